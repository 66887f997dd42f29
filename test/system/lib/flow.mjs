// One session through the official v1 client, every feature once: what acceptance asks of each of
// the hundred sessions. The kinds of replica differ in the names of their tools only.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as T from '@modelcontextprotocol/sdk/types.js';
import { freshFetch, openEvents, send } from './http.mjs';
import { POST_HEADERS, request, SESSION, toolCall } from './rpc.mjs';

const textOf = result => result.content[0].text;

export const KINDS = {
  everything: {
    tool: { progress: ['trigger-long-running-operation', { duration: 0.2, steps: 2 }],
      sampling: ['trigger-sampling-request', { prompt: 'p', maxTokens: 5 }],
      elicitation: ['trigger-elicitation-request', {}],
      notify: ['toggle-simulated-logging', {}],
      late: ['trigger-long-running-operation', { duration: 0.4, steps: 1 }] },
    async whoami(client) {
      const env = await client.callTool({ name: 'get-env', arguments: {} });
      return JSON.parse(textOf(env)).NAME;
    },
  },
  conf: {
    tool: { progress: ['test_tool_with_progress', {}],
      sampling: ['test_sampling', { prompt: 'p' }],
      elicitation: ['test_elicitation', { message: 'm' }],
      notify: ['notify', { n: 1 }],
      late: ['slow', { ms: 400 }] },
    async whoami(client) {
      return textOf(await client.callTool({ name: 'whoami', arguments: {} }));
    },
    async count(client) {
      return textOf(await client.callTool({ name: 'count', arguments: {} }));
    },
  },
  // test/interop/conf-server, the library's server
  library: {
    tool: { progress: ['test_tool_with_progress', {}],
      sampling: ['test_sampling', { prompt: 'p' }],
      elicitation: ['test_elicitation', { message: 'm' }],
      notify: ['test_tool_with_logging', {}],
      late: ['test_tool_with_progress', {}] },
    async whoami(client) {
      return textOf(await client.callTool({ name: 'whoami', arguments: {} }));
    },
  },
};

const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };

// A connected client. `seen` counts what the server asked of it, and the GET streams it opened.
export async function connect(url, { fetch: inner = freshFetch(), sse = false } = {}) {
  const seen = { sampling: 0, elicitation: 0, log: 0, progress: 0, streams: 0, errors: [] };
  const fetch = async (input, init = {}) => {
    const answer = await inner(input, init);
    if ((init.method ?? 'GET') === 'GET' && answer.status === 200) seen.streams++;
    return answer;
  };
  const client = new Client({ name: 'limpet-test', version: '1' }, { capabilities });
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
  client.onerror = error => seen.errors.push(error.message);
  const transport = sse
    ? new SSEClientTransport(new URL(url), { fetch, eventSourceInit: { fetch } })
    : new StreamableHTTPClientTransport(new URL(url), { fetch });
  await client.connect(transport);
  return { client, transport, seen, fetch, url };
}

export async function until(test, within, what) {
  const end = performance.now() + within;
  while (!await test()) {
    if (performance.now() > end) assert.fail(`${what}: not within ${within} ms`);
    await sleep(20);
  }
}

async function useTools({ client, seen }, kind) {
  const call = ([name, args], options) =>
    client.callTool({ name, arguments: args }, undefined, options);
  await call(kind.tool.progress, { onprogress: () => { seen.progress++; } });
  assert.ok(seen.progress >= 1, 'progress came');
  await call(kind.tool.sampling);
  assert.equal(seen.sampling, 1, 'sampling was asked');
  await call(kind.tool.elicitation);
  assert.equal(seen.elicitation, 1, 'elicitation was asked');
}

async function useLists({ client }) {
  assert.ok((await client.listTools()).tools.length > 0);
  assert.ok((await client.listResources()).resources.length > 0);
  assert.ok((await client.listPrompts()).prompts.length > 0);
}

async function hearNotification({ client, seen }, kind) {
  const [name, args] = kind.tool.notify;
  await until(() => seen.streams > 0, 3000, 'the GET stream opens');
  await client.callTool({ name, arguments: args });
  await until(() => seen.log > 0, 8000, 'a notification on the GET stream');
}

// A POST stream is cut after its first event; the answer must come on GET with Last-Event-ID.
async function resume({ transport, fetch, url }, kind) {
  const headers = { ...POST_HEADERS, [SESSION]: transport.sessionId,
    'mcp-protocol-version': transport.protocolVersion };
  const [name, args] = kind.tool.late;
  const cut = new AbortController();
  const answer = await fetch(url,
    { method: 'POST', headers, body: toolCall(777, name, args), signal: cut.signal });
  assert.equal(answer.status, 200);
  const id = await firstEventId(answer.body);
  cut.abort();
  await sleep(600);
  const stop = new AbortController();
  const again = await fetch(url, { signal: stop.signal,
    headers: { ...headers, accept: 'text/event-stream', 'last-event-id': id } });
  assert.equal(again.status, 200, 'resume');
  await textUntil(again.body, '"id":777');
  stop.abort();
}

async function textUntil(body, wanted) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const late = setTimeout(() => reader.cancel('too late'), 6000);
  try {
    for (let text = ''; ;) {
      const { value, done } = await reader.read();
      if (done) assert.fail(`the stream ended without ${wanted}: ${text.slice(-300)}`);
      text += value;
      if (text.includes(wanted)) return text;
    }
  } finally {
    clearTimeout(late);
    reader.cancel().catch(() => {});
  }
}

async function firstEventId(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ''; ;) {
    const { value, done } = await reader.read();
    if (done) assert.fail('the POST stream ended before its first event');
    text += value;
    const found = /^id: ?(\S+)\r?\n/m.exec(text);
    if (found) return found[1];
  }
}

async function end({ client, transport, fetch, url }) {
  const id = transport.sessionId;
  await transport.terminateSession();
  await client.close();
  const after = await fetch(url, { method: 'POST', body: request(9, 'ping'),
    headers: { ...POST_HEADERS, [SESSION]: id } });
  await after.text();
  assert.ok(after.status >= 400, `after DELETE the session still answers: ${after.status}`);
  return after.status;
}

// The whole life of one session. Returns the replica that owned it. With `anywhere` every replica
// has every session.
export async function session(url, kindName, options = {}) {
  const kind = KINDS[kindName];
  const connected = await connect(url, options);
  const owner = await kind.whoami(connected.client);
  await useLists(connected);
  await useTools(connected, kind);
  await hearNotification(connected, kind);
  const sameAnswers = async when => {
    const who = await kind.whoami(connected.client);
    if (!options.anywhere) assert.equal(who, owner, `the same replica answers${when}`);
  };
  await sameAnswers('');
  if (kind.count) {
    assert.equal(await kind.count(connected.client), `${owner} 1`);
    assert.equal(await kind.count(connected.client), `${owner} 2`);
  }
  if (!options.sse) await resume(connected, kind);
  await sameAnswers(' at the end');
  const lostStatus = options.sse ? undefined : await end(connected);
  if (options.sse) await connected.client.close();
  return { owner, lostStatus };
}

// Runs `count` sessions, `width` at a time; returns their results and failures.
export async function sessions(count, width, one) {
  const results = [];
  const failures = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const number = next++;
      try {
        results.push(await one(number));
      } catch (error) {
        failures.push(`session ${number}: ${error.stack}`);
      }
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return { results, failures };
}

export { openEvents, send };
