const TOKEN_SUBJECT = /^token:([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;

/** The subject as which a service token acts. */
export const tokenSubject = (id: string): string => `token:${id}`;

/** No person has such a subject. */
export const isTokenSubject = (subject: string): boolean => TOKEN_SUBJECT.test(subject);

/** The id of the service token that acts as this subject; `null`: a person does. */
export const tokenOf = (subject: string): string | null => TOKEN_SUBJECT.exec(subject)?.[1] ?? null;
