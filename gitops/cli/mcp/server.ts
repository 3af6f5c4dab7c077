import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { RELEASE } from '../../../base/release.ts';
import { CliError } from '../output/cli-error.ts';
import { callTool, type ToolTarget } from './call.ts';
import type { ApiTool } from './tools.ts';

interface McpOptions {
  readonly tools: readonly ApiTool[];
  readonly target: ToolTarget;
  /** Whether tools may change anything. */
  readonly allowsChanges: boolean;
}

/** Serves the tools on standard input and output until the input ends. */
export async function serveTools({ tools, target, allowsChanges }: McpOptions): Promise<void> {
  const offered = tools.filter((tool) => allowsChanges || isRead(tool));
  const server = new Server(
    { name: 'tagyard', version: RELEASE },
    {
      capabilities: { tools: {} },
      instructions: allowsChanges
        ? 'The management API of Tagyard. Where a tool has the argument dryRun, call it with dryRun first, and show what would change. To change exactly that, pass the plan’s checksum as x-tagyard-plan.'
        : 'The management API of Tagyard, read-only.',
    },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: offered.map((tool) => ({
      name: tool.name,
      description: tool.description,
      inputSchema: tool.inputSchema,
      annotations: {
        readOnlyHint: isRead(tool),
        destructiveHint: tool.method === 'DELETE',
        idempotentHint: tool.method !== 'POST' && tool.method !== 'PATCH',
        openWorldHint: false,
      },
    })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }): Promise<CallToolResult> => {
    try {
      const tool = toolNamed(params.name, { tools, allowsChanges });
      return answer(await callTool(tool, params.arguments ?? {}, target));
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      return { ...answer(error.message), isError: true };
    }
  });
  await server.connect(new StdioServerTransport());
}

function toolNamed(
  name: string,
  { tools, allowsChanges }: Pick<McpOptions, 'tools' | 'allowsChanges'>,
): ApiTool {
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined) throw new CliError(`there is no tool ${name}`);
  if (isRead(tool) || allowsChanges) return tool;
  throw new CliError(`${name} changes something, and this server only reads: start it with --allow-changes`);
}

function isRead({ method }: ApiTool): boolean {
  return method === 'GET';
}

function answer(text: string): CallToolResult {
  return { content: [{ type: 'text', text }] };
}
