/** Logs an event that an operator has to know of. Never pass cookie values, addresses or query strings. */
export type EventLog = (event: string, fields: Readonly<Record<string, unknown>>) => void;

/** One line of JSON per event: `wrangler tail` prints it, and Workers Logs indexes its fields. */
export const consoleLog: EventLog = (event, fields) => console.warn(JSON.stringify({ event, ...fields }));

/** Keeps work running after the response is sent. */
export type WaitUntil = (work: Promise<unknown>) => void;
