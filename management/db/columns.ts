import type { ColumnType } from 'kysely';

/** JSON columns are read as data and written as text: drivers disagree on how to write arrays. */
export type Json<T> = ColumnType<T, string, string>;
export type CreatedAt = ColumnType<Date, never, never>;
export type UpdatedAt = ColumnType<Date, never, Date>;
/** Computed by the database from other columns. */
export type Computed<T> = ColumnType<T, never, never>;
