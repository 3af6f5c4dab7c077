import type { Generated } from 'kysely';
import type { CreatedAt } from './columns.ts';

export interface Clients {
  id: string;
  name: string;
  organisation_id: Generated<string | null>;
  /** Not `null`: hidden from lists, and without live containers. */
  archived_at: Generated<Date | null>;
  /** Blob of the file in git that was projected last; `null`: none was. */
  blob: Generated<string | null>;
  created_at: CreatedAt;
}

export interface Organisations {
  id: string;
  name: string;
  /** Not `null`: hidden from lists, and without clients that aren't archived. */
  archived_at: Generated<Date | null>;
  /** The same as `blob` of clients. */
  blob: Generated<string | null>;
  created_at: CreatedAt;
}

export interface OrganisationMemberships {
  organisation_id: string;
  subject: string;
  role: string;
}

export interface ClientMemberships {
  client_id: string;
  subject: string;
  role: string;
}

export interface ServiceTokens {
  id: string;
  /** SHA-256 of the token. */
  hash: string;
  name: string;
  client_id: string | null;
  organisation_id: string | null;
  role: string;
  /** Subject of who made it. */
  created_by: string;
  created_at: CreatedAt;
  expires_at: Date | null;
  last_used_at: Generated<Date | null>;
  revoked_at: Generated<Date | null>;
}

export interface Invitations {
  id: string;
  /** SHA-256 of the token in the link. */
  hash: string;
  client_id: string | null;
  organisation_id: string | null;
  /** Whom it is for. Only shown: anyone who has the token may accept. */
  email: string | null;
  role: string;
  created_by: string;
  created_at: CreatedAt;
  expires_at: Date;
  accepted_by: Generated<string | null>;
  accepted_at: Generated<Date | null>;
}
