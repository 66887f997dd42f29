// The official client over stdio, with `limpet connect` as the server that it starts.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import * as T from '@modelcontextprotocol/sdk/types.js';
import { LIMPET } from './proc.mjs';

export async function host(t, url, flags = []) {
  const seen = { sampling: 0, elicitation: 0, log: 0, progress: 0, errors: [], said: '' };
  const client = new Client({ name: 'limpet-test', version: '1' },
    { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } });
  client.setRequestHandler(T.ListRootsRequestSchema, () =>
    ({ roots: [{ uri: 'file:///test', name: 'test' }] }));
  client.setRequestHandler(T.CreateMessageRequestSchema, () => {
    seen.sampling++;
    return { model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled' } };
  });
  client.setRequestHandler(T.ElicitRequestSchema, () => {
    seen.elicitation++;
    return { action: 'decline' };
  });
  client.setNotificationHandler(T.LoggingMessageNotificationSchema, () => { seen.log++; });
  // The client forgets a token before it has looked at a progress that came with the answer.
  client.onerror = error => {
    if (!/progress notification for an unknown token/.test(error.message)) {
      seen.errors.push(error.message);
    }
  };
  const transport = new StdioClientTransport(
    { command: LIMPET, args: ['connect', ...flags, url], stderr: 'pipe' });
  transport.stderr.on('data', text => { seen.said += text; });
  await client.connect(transport);
  t.after(() => client.close());
  return { client, seen, transport };
}
