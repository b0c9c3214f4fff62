/** What the process exits with. */
export const exitCodes = {
  ok: 0,
  /** The command failed, or the doctor found something. */
  failed: 1,
  usage: 2,
  deadlineExceeded: 3,
  shortCircuited: 4,
  /** The service said in `X-Deadline-Outcome` that something else ended the work: shed, operation_timeout, ... */
  otherOutcome: 5,
  httpError: 6,
  /** No answer at all, or one that broke off. */
  connection: 7,
  /** Ctrl-C; what shells give for SIGINT. */
  stopped: 130,
} as const
