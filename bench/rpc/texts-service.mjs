// Described here, so that no compiler of protos is needed.
import { create, createFileRegistry } from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'

const text = {
  name: 'text',
  jsonName: 'text',
  number: 1,
  type: FieldDescriptorProto_Type.STRING,
  label: FieldDescriptorProto_Label.OPTIONAL,
}
const file = create(FileDescriptorProtoSchema, {
  name: 'bench.proto',
  package: 'bench',
  syntax: 'proto3',
  messageType: [{ name: 'Text', field: [text] }],
  service: [
    { name: 'Texts', method: [{ name: 'Ask', inputType: '.bench.Text', outputType: '.bench.Text' }] },
  ],
})

/** `bench.Texts`, with its one unary method. */
export const textsService = createFileRegistry(file, () => undefined).getService('bench.Texts')
