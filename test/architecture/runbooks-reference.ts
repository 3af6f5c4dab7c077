import { RUNBOOKS } from '../../gitops/report/runbooks.ts';

const INTRO = `# What checks find, and what to do

<!-- Written by \`npm run generate:runbooks\` from gitops/report/runbooks.ts. -->

These checks are made in three places:

- \`tagyard check\` checks the settings of a host, of management, or of both, before the first start and beside running
  daemons. It reads the environment and \`.env\`, or instead of \`.env\` the files that \`--env-file\` names:
  \`tagyard check --env-file /etc/tagyard/provisioner.env --env-file /etc/tagyard/management.env\`.
- Each start of a daemon logs a warning for each finding, and one line for all checks. It waits for none of them.
  Management goes on checking, every five minutes, within 30 s after a finding, and logs it whenever others fail.
- \`tagyard doctor --host\` asks the running daemons and the workers; the host tries its settings again. \`tagyard doctor\`
  asks for the sites, too, but tries no settings of the host.

A check is \`passed\`, \`failed\` (a finding) or \`skipped\` (not checked: nothing is known). The exit code is 0 if there is
nothing to fix, else 1; \`--json\` prints \`{ checks: [{ part, name, status, detail, fix }] }\` (\`doctor\`: without
\`part\`). A finding names the setting, the fact and the fix. A setting can be right for another user only: run \`tagyard check\` as the service's user.
`;

/** The reference of all checks: docs/runbooks.md. */
export function runbooksReference(): string {
  const sections = Object.entries(RUNBOOKS).map(([name, { checks, settings, fixes }]) => {
    const about =
      settings.length === 0 ? '' : `\n\nSettings: ${settings.map((one) => `\`${one}\``).join(', ')}.`;
    const steps = Object.values(fixes).map((fix: string) => `\n- ${fix}`);
    return `\n## ${name}\n\nPasses if: ${checks}${about}\n${steps.join('')}${steps.length === 0 ? '' : '\n'}`;
  });
  return `${INTRO}${sections.join('')}`;
}
