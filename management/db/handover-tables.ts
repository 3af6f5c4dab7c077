import type { ColumnType, Generated } from 'kysely';
import type { Json } from './columns.ts';

export interface HandoverLinks {
  id: string;
  /** SHA-256 of the secret in the page's address, hexadecimal. */
  hash: string;
  client_id: string;
  /** `null`: all of the client's. */
  container_id: string | null;
  recipients: Json<string[]>;
  created_by: string;
  created_at: ColumnType<Date, Date, never>;
  expires_at: Date;
  /** When its records are checked next. */
  next_at: Date;
  /** When all records were first right. */
  complete_at: Date | null;
  mail: 'none' | 'waiting' | 'due' | 'sending' | 'sent' | 'failed' | 'unclear';
  /** When the mail is due, or when its sending began or ended. */
  mail_at: Date | null;
  mail_attempts: Generated<number>;
  mail_error: string | null;
}

export interface ChecklistVerdicts {
  container_id: string;
  item:
    | 'tagging_server_url'
    | 'client_claims'
    | 'ids_agree'
    | 'google_tag'
    | 'server_container'
    | 'published';
  state: 'done' | 'open' | 'unknown';
  detail: string;
  checked_at: Date;
}
