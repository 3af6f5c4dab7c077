import type { Command } from 'commander';

/** The shells that `tagyard completion` writes a script for. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type ShellName = (typeof SHELLS)[number];

/** A verb as a user types it (`keys rotate`), with what can follow it. */
interface Verb {
  readonly words: string;
  readonly description: string;
  readonly options: readonly string[];
  readonly choices: readonly string[];
  readonly takesSite: boolean;
  readonly takesFile: boolean;
}

/** Sites are asked for when they are completed: the list is that of the configured instance. */
const SITES = 'tagyard list --names 2>/dev/null';

/**
 * The script that completes verbs, options, choices, files and sites in a shell.
 *
 * @example
 * source <(tagyard completion bash)
 */
export function completionScript(program: Command, shell: ShellName): string {
  const verbs = verbsOf(program);
  if (shell === 'fish') return fishScript(verbs);
  return shell === 'bash' ? bashScript(verbs) : `#compdef tagyard\n${ZSH_HEAD}${bashScript(verbs)}`;
}

function verbsOf(command: Command, before: readonly string[] = []): Verb[] {
  return command.commands.flatMap((one) => {
    const words = [...before, one.name()];
    const takes = one.registeredArguments;
    const verb = {
      words: words.join(' '),
      description: one.description().split(/[;:(]/)[0]?.trim() ?? '',
      options: [...one.options.flatMap(({ long }) => long ?? []), '--help'],
      choices: [
        ...one.commands.map((child) => child.name()),
        ...takes.flatMap(({ argChoices = [] }) => argChoices),
      ],
      takesSite: takes.some((argument) => argument.name() === 'site'),
      takesFile: takes.some((argument) => /^files?$/.test(argument.name())),
    };
    return [verb, ...verbsOf(one, words)];
  });
}

function bashScript(verbs: readonly Verb[]): string {
  const cases = verbs.map(({ words, options, choices, takesSite, takesFile }) => {
    const sites = takesSite ? `; [[ $cur == -* ]] || words+=" $(${SITES})"` : '';
    const files = takesFile ? '; compopt -o default 2>/dev/null' : '';
    return `    '${words}') words='${[...options, ...choices].join(' ')}'${sites}${files} ;;`;
  });
  const top = verbs.filter(({ words }) => !words.includes(' ')).map(({ words }) => words);
  const nested = [...new Set(verbs.flatMap(({ words }) => words.match(/^(\S+) /)?.[1] ?? []))];
  return `_tagyard() {
  local cur=\${COMP_WORDS[COMP_CWORD]} verb=\${COMP_WORDS[1]} words=''
  case $verb in ${nested.join('|')}) (( COMP_CWORD > 2 )) && verb+=" \${COMP_WORDS[2]}" ;; esac
  (( COMP_CWORD == 1 )) && verb=''
  case $verb in
    '') words='${[...top, '--help', '--version'].join(' ')}' ;;
${cases.join('\n')}
  esac
  COMPREPLY=( $(compgen -W "$words" -- "$cur") )
}
complete -F _tagyard tagyard
`;
}

/** zsh reads the script of bash: its own loader of such scripts comes with it. */
const ZSH_HEAD = 'autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n';

function fishScript(verbs: readonly Verb[]): string {
  const quote = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`;
  const lines = verbs.flatMap(({ words, description, options, choices, takesSite, takesFile }) => {
    const [first = '', second] = words.split(' ');
    const seen =
      second === undefined
        ? `__fish_seen_subcommand_from ${first}`
        : `__fish_seen_subcommand_from ${first}; and __fish_seen_subcommand_from ${second}`;
    const complete = `complete -c tagyard -n ${quote(seen)}`;
    const name =
      second === undefined
        ? [`complete -c tagyard -n __fish_use_subcommand -a ${first} -d ${quote(description)}`]
        : [];
    return [
      ...name,
      ...options.map((option) => `${complete} -l ${option.slice(2)}`),
      ...(choices.length === 0 ? [] : [`${complete} -a ${quote(choices.join(' '))}`]),
      ...(takesSite ? [`${complete} -a ${quote(`(${SITES})`)}`] : []),
      ...(takesFile ? [`${complete} -F`] : []),
    ];
  });
  return `complete -c tagyard -f\n${lines.join('\n')}\n`;
}
