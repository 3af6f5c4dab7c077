import { toldOf } from '../../gitops/report/report.ts';

/** What a client reads where the provider's limit is reached: no figures or settings, which only operators may see. */
export const NO_ROOM = 'there is no room for the site at the moment; only the operator can make room';

const QUOTA_REACHED = 'QuotaReached';

/** A site's condition on its host, in a form that its client may read. The provisioner writes for operators. */
export function hostDetail(reason: string, message: string): string {
  if (reason === QUOTA_REACHED) return NO_ROOM;
  return toldOf(reason, message);
}

/** The same for the text of a failed operation, which begins with the reason. */
export function failureDetail(text: string): string {
  return text.startsWith(`${QUOTA_REACHED}: `) ? NO_ROOM : text;
}
