// Why a request failed, in words for the person who reads the page.

const REASONS = {
  408: "the service did not get all of it",
  413: "it is too long",
  502: "the service cannot be reached",
  503: "the service is busy",
  504: "the service does not answer",
};

/** A response that is an error. Its message is the reason. */
export class Refusal extends Error {
  constructor(reason, retryAfter = null) {
    super(reason);
    this.retryAfter = retryAfter;
  }

  /** The refusal in `response`, whose `detail` is a sentence, or a list of what is wrong with the request. */
  static async of(response) {
    const { detail } = await response.json().catch(() => ({}));
    const sentence = Array.isArray(detail) ? detail.map((one) => one.msg).join("; ") : detail;
    const reason = REASONS[response.status] ?? sentence ?? `the service answers with status ${response.status}`;
    const seconds = Number(response.headers.get("Retry-After") ?? NaN);
    return new Refusal(reason, Number.isFinite(seconds) ? seconds : null);
  }
}

/** The reason for any error of a request. */
export function reasonOf(error) {
  if (error instanceof Refusal) return error.message;
  if (error.name === "TimeoutError") return "the service does not answer";
  return "the service cannot be reached";
}
