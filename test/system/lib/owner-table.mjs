// The owner-id table (requirements [S3], [S4]; cases AFF-02): what an MCP server or sidecar with the
// owner id m1 does with each kind of session id, for POST, GET and DELETE. `replay` is the value of
// the replay header where it is on; else m2 is nobody's peer.
import assert from 'node:assert/strict';
import net from 'node:net';
import { send } from './http.mjs';
import { assertLost, assertRpcError, POST_HEADERS, request, SESSION } from './rpc.mjs';

export const UUID = '7d6f3c1e-9a51-4a0c-8d7e-0c7c6f1b2a34';
export const METHODS = ['POST', 'GET', 'DELETE'];
const BODY = request('q7', 'tools/list');

// No owner's id, by its form.
const MALFORMED = [UUID, 'm2', 'm2;x=y', `m2;x=y.${UUID}`, `m2,instance=m3.${UUID}`, 'm-2.1',
  `${'m'.repeat(33)}.${UUID}`, '.', '..', 'm2.', `.${UUID}`, `m 2.${UUID}`, `m2 .${UUID}`,
  `m\u00e9.${UUID}`, `m2.${UUID}\u00e9`];
// The same with bytes that no client library lets through, and whether that is HTTP at all.
const RAW = [['', 404], ['   ', 404], [`m\u00fc.${UUID}`, 404], [`\u{1d4c2}2.${UUID}`, 404],
  [`m2\r\n .${UUID}`, 400], [`m2\rfly-replay: instance=m3.${UUID}`, 400], [`m2\n.${UUID}`, 400],
  [`m2\0.${UUID}`, 400], [`m2.${UUID}\x7f`, 400]];
const PASSED = ['fly-replay-src', 'fly-replay-failed'];

export function ask(url, method, id, headers = {}) {
  const all = { ...(id !== undefined && { [SESSION]: id }), ...headers };
  return method === 'POST' ? send(url, { method, body: BODY, headers: { ...POST_HEADERS, ...all } })
    : send(url, { method, headers: { accept: 'text/event-stream', ...all } });
}

// A 404 like any other, which tells nobody what he sent.
export function assertNotHere(answer, method) {
  assertLost(answer, method === 'POST' ? 'q7' : null);
  assert.equal(answer.headers['fly-replay'], undefined);
  const said = JSON.stringify(answer.rawHeaders ?? answer.headers) + answer.text;
  assert.ok(!/m2|m3/.test(said) && !said.includes(UUID), `echoed: ${said}`);
}

export function assertReplay(answer, value) {
  assert.equal(answer.status, 204, answer.text);
  assert.equal(answer.headers['fly-replay'], value);
  assert.equal(answer.text, '');
}

async function rawAnswer(url, method, id) {
  const { hostname, port, pathname } = new URL(url);
  const socket = net.connect(port, hostname);
  const head = `${method} ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n` +
    `Accept: application/json, text/event-stream\r\nMcp-Session-Id: ${id}\r\n`;
  const body = method === 'POST'
    ? `Content-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}` : '\r\n';
  socket.write(Buffer.from(head + body, 'utf8'));
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text;
}

async function assertRaw(url, method) {
  for (const [id, status] of RAW) {
    const text = await rawAnswer(url, method, id);
    assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `), `${method} ${JSON.stringify(id)}`);
    assert.ok(!/fly-replay/i.test(text) && !/m2|m3/.test(text) && !text.includes(UUID), text);
    if (status === 404) assert.match(text, /-32001/);
  }
}

export async function assertOwnerTable(url, { replay } = {}) {
  for (const method of METHODS) {
    for (const headers of [{}, { 'limpet-hop': `h1.m1.${'A'.repeat(80)}` }, { 'limpet-hop': '1' }]) {
      const answer = await ask(url, method, `m2.${UUID}`, headers);
      if (replay) assertReplay(answer, replay);
      else assertNotHere(answer, method);
    }
    for (const id of MALFORMED) assertNotHere(await ask(url, method, id), method);
    assertNotHere(await ask(url, method, `m1.${UUID}`), method);
    for (const mark of PASSED) {
      assertNotHere(await ask(url, method, `m2.${UUID}`, { [mark]: 'instance=m3;t=1' }), method);
      assertNotHere(await ask(url, method, `m1.${UUID}`, { [mark]: 'instance=m3;t=1' }), method);
    }
    const none = await ask(url, method);
    assertRpcError(none, { status: 400, code: -32000, id: method === 'POST' ? 'q7' : null });
    assert.equal(none.headers['fly-replay'], undefined);
    await assertRaw(url, method);
  }
}
