/**
 * For whatever takes as long as a request: the boundaries that the semantic conventions advise for
 * `http.server.request.duration`, and beyond them up to five minutes, the longest budget by default. Seconds.
 */
export const requestBuckets: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120, 300,
]

/** For what should take no time: how late something ended. From the resolution of a timer to ten seconds. */
export const latenessBuckets: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** For shares of a budget: tenths, closer towards its end, and beyond it. */
export const shareBuckets: readonly number[] = [
  0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.1, 1.5, 2,
]

/** What the semantic conventions for generative AI advise for durations of calls and for the time to their first chunk. Seconds. */
export const modelCallBuckets: readonly number[] = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
]

/** What they advise for tokens of a call. */
export const tokenBuckets: readonly number[] = [
  1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
]
