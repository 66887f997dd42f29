// JSON-RPC messages of MCP, and a session spoken by hand over plain HTTP: what the official client
// would hide (statuses, headers, connections) stays visible.
import assert from 'node:assert/strict';
import { open, openEvents, send } from './http.mjs';
import { parseEvents } from './sse.mjs';

export const VERSION = '2025-11-25';
export const MODERN = '2026-07-28';
export const SESSION = 'mcp-session-id';

export const POST_HEADERS = {
  'content-type': 'application/json', accept: 'application/json, text/event-stream' };

export const request = (id, method, params) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, ...(params && { params }) });
export const notification = (method, params) =>
  JSON.stringify({ jsonrpc: '2.0', method, ...(params && { params }) });
export const initialize = (id = 0, capabilities = {}) => request(id, 'initialize', {
  protocolVersion: VERSION, capabilities, clientInfo: { name: 'test', version: '1' } });
export const toolCall = (id, name, args = {}) =>
  request(id, 'tools/call', { name, arguments: args });

// A request of the sessionless era, its headers in agreement with its body.
export function modern(id, method, params = {}, { headers = {}, meta = {} } = {}) {
  const body = { jsonrpc: '2.0', id, method, params: { ...params, _meta: {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' }, ...meta } } };
  const name = params.name ?? params.uri ?? params.taskId;
  return { method: 'POST', body: JSON.stringify(body), headers: { ...POST_HEADERS,
    'mcp-protocol-version': MODERN, 'mcp-method': method, ...(name && { 'mcp-name': name }),
    ...headers } };
}

// What a client says in _meta that takes tasks, and can be asked.
export const TAKES_TASKS = { 'io.modelcontextprotocol/clientCapabilities':
  { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } } };

export const post = (url, body, headers = {}) =>
  send(url, { method: 'POST', headers: { ...POST_HEADERS, ...headers }, body });

// The JSON-RPC message that answers a POST, from a JSON body or the last event of a stream.
export function answerOf(answer) {
  if (answer.json !== undefined) return answer.json;
  const messages = parseEvents(answer.text).filter(e => e.data).map(e => JSON.parse(e.data));
  return messages.findLast(m => m.id !== undefined && m.method === undefined);
}

// A session on Streamable HTTP. `url` may change between requests (another gateway).
export class Session {
  #nextId = 1;

  constructor(url, headers = {}) {
    this.url = url;
    this.extra = headers;
  }

  get headers() {
    return { ...this.extra, [SESSION]: this.id, 'mcp-protocol-version': VERSION };
  }

  static async open(url, { headers = {}, capabilities = {} } = {}) {
    const session = new Session(url, headers);
    session.initialized = await post(url, initialize(0, capabilities), headers);
    assert.equal(session.initialized.status, 200, session.initialized.text);
    session.id = session.initialized.headers[SESSION];
    assert.ok(session.id, 'initialize gave no session id');
    const noted = await session.post(notification('notifications/initialized'));
    assert.equal(noted.status, 202, noted.text);
    return session;
  }

  post(body, headers = {}) { return post(this.url, body, { ...this.headers, ...headers }); }
  ask(method, params) { return this.post(request(this.#nextId++, method, params)); }
  callTool(name, args) { return this.ask('tools/call', { name, arguments: args ?? {} }); }

  // The text of a tool's result; fails on anything but a result.
  async tool(name, args) {
    const answer = await this.callTool(name, args);
    assert.equal(answer.status, 200, answer.text);
    const message = answerOf(answer);
    assert.ok(message?.result, `no result: ${answer.text}`);
    return message.result.content[0].text;
  }

  stream(headers = {}) {
    return openEvents(this.url, {
      headers: { accept: 'text/event-stream', ...this.headers, ...headers } });
  }
  get(headers = {}) {
    return send(this.url, { headers: { accept: 'text/event-stream', ...this.headers, ...headers } });
  }
  delete() { return send(this.url, { method: 'DELETE', headers: this.headers }); }
  openPost(body, headers = {}) {
    return openEvents(this.url, {
      method: 'POST', body, headers: { ...POST_HEADERS, ...this.headers, ...headers } });
  }
}

// Checks an error made by the gateway: status, a complete JSON-RPC body, and the id as it was sent.
export function assertRpcError(answer, { status, code, id = null, rawId }) {
  assert.equal(answer.status, status, `status of: ${answer.text}`);
  assert.match(answer.headers?.['content-type'] ?? answer.header?.('content-type') ?? '',
    /^application\/json/, 'content type');
  const body = answer.json ?? JSON.parse(answer.text ?? answer.body);
  assert.equal(body.jsonrpc, '2.0');
  assert.equal(Number.isInteger(body.error?.code), true, 'error.code is an integer');
  assert.equal(typeof body.error.message, 'string');
  assert.ok('id' in body, 'the body has an id member');
  if (code !== undefined) assert.equal(body.error.code, code, `code of: ${JSON.stringify(body)}`);
  if (rawId !== undefined) {
    const text = answer.text ?? answer.body;
    assert.ok(text.replace(/\s/g, '').includes(`"id":${rawId}`), `${rawId} is not echoed: ${text}`);
  } else {
    assert.deepEqual(body.id, id);
  }
  return body.error;
}

export function assertLost(answer, id = null) {
  const error = assertRpcError(answer, { status: 404, code: -32001, id });
  assert.equal(error.message, 'Session not found');
}

export { open, openEvents, send };
