import { embeddedOperator } from './client.ts';
import { Home } from './instance/home.ts';
import { mintToken } from './instance/issuer.ts';

/** Prints a JWT of a development subject that has `role` in the client; only the embedded instance trusts it. */
export async function token(home: string, { client, role }: { client: string; role: string }): Promise<void> {
  const instanceHome = new Home(home);
  const operator = await embeddedOperator(instanceHome);
  const subject = `dev-${role}`;
  await operator.setMember(client, subject, role);
  process.stdout.write(`${await mintToken(await instanceHome.instance(), subject)}\n`);
}
