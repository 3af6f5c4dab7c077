import { NO_LIMITS, startEmulator } from '../support/cloudflare/emulator.ts';

/**
 * The emulator as a process of its own, so that its work isn't counted as the daemon's. It answers each message with
 * the calls since the previous message.
 */
const { url, account, zone, calls } = await startEmulator({ checked: false, limits: NO_LIMITS });
process.once('disconnect', () => process.exit(0));
process.on('message', () => process.send?.({ calls: calls.splice(0) }));
process.send?.({ url, account, zoneId: zone.id });
