const asIs = (bytes) => bytes

/** A unary gRPC call whose messages are bytes. */
export const ask = {
  path: '/bench.Texts/Ask',
  requestStream: false,
  responseStream: false,
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
}
