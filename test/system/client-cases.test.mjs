// The client's part of the field cases about lost sessions, repeating, resuming, versions and
// secrets, seen at the wire: `limpet connect` and `limpet inspect` with servers that the test plays.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { suite, test } from 'node:test';
import { byHand } from './lib/bridge.mjs';
import { until } from './lib/flow.mjs';
import { folder } from './lib/gateway.mjs';
import { inspect } from './lib/inspect.mjs';
import { INFO, json, played, result } from './lib/played.mjs';
import { sleep } from './lib/proc.mjs';
import { rawAnswer, rawPeer } from './lib/raw.mjs';
import { Authority } from './lib/tls.mjs';
import { tiny } from './lib/tiny.mjs';

const LEGACY = ['--era', 'legacy'];
const QUIET = ['--no-notification-stream'];
const LOST = { jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } };

// A server with sessions: forget() loses them, `refuse(response, message)` is how it says so.
async function forgetful(t, { refuse, play, info = () => INFO } = {}) {
  const sessions = new Set();
  let count = 0;
  let runs = 0;
  const server = await played(t, (method, message, { request, response }) => {
    if (method === 'server/discover') return response.writeHead(400).end() && undefined;
    const answer = play?.(method, message, { request, response });
    if (answer || response.headersSent || response.destroyed) return answer;
    if (method === 'initialize') {
      sessions.add(`s${++count}`);
      return void result(response, message, info(count), { 'mcp-session-id': `s${count}` });
    }
    if (!sessions.has(request.headers['mcp-session-id'])) {
      return refuse && message?.id !== undefined ? refuse(response, message)
        : json(response, LOST, {}, 404);
    }
    if (request.method === 'DELETE') {
      sessions.delete(request.headers['mcp-session-id']);
      return void response.writeHead(204).end();
    }
    if (method === 'tools/call') return { content: [{ type: 'text', text: `run ${++runs}` }] };
    return method === 'tools/list' ? { tools: [] } : message?.id !== undefined ? {} : undefined;
  });
  return Object.assign(server, { sessions, runs: () => runs, forget: () => sessions.clear() });
}

const wire = server => server.seen.map(row =>
  [row.http, row.message?.method, row.headers['mcp-session-id']].filter(Boolean).join(' '));

suite('a lost session', () => {
  test('STA-02 initialize without the old id, initialized, the request once more, the stream', async t => {
    const server = await forgetful(t);
    const bridge = byHand(t, server.url, LEGACY);
    await bridge.open();
    await until(() => wire(server).includes('GET s1'), 3000, 'the notification stream');
    server.seen.length = 0;
    server.forget();
    assert.deepEqual((await bridge.ask('tools/list')).result, { tools: [] });
    await until(() => server.seen.length === 5, 3000, 'five requests');
    assert.deepEqual(wire(server).slice(0, 3), ['POST tools/list s1', 'POST initialize',
      'POST notifications/initialized s2']);
    assert.deepEqual(wire(server).slice(3).sort(), ['GET s2', 'POST tools/list s2']);
    assert.match(bridge.said, /the session was lost; a new one is open/);
  });

  test('STA-02 a server that is unavailable during recovery: the caller hears both', async t => {
    let isDown = false;
    const server = await forgetful(t, { play: (method, message, { response }) =>
      void (isDown && method === 'initialize' && response.writeHead(503).end('deploying')) });
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    server.forget();
    isDown = true;
    const { error } = await bridge.ask('tools/list');
    assert.match(error.message,
      /the session was lost, and no new one could be opened: .*HTTP 503.*deploying/);
    isDown = false;
    assert.ok((await bridge.ask('tools/list')).result, 'the next call opens one');
  });

  const MEANS_LOST = [
    ['STA-04 400 "no valid session"', 400, { jsonrpc: '2.0', id: null,
      error: { code: -32000, message: 'Bad Request: No valid session ID provided' } }],
    ['STA-04 422 that expects initialize', 422, 'Unexpected message, expect initialize request'],
    ['STA-11 404 without a body', 404, ''],
    ['STA-11 404 "Not Found"', 404, 'Not Found'],
    ['STA-11 404 with a page', 404, '<!DOCTYPE html><html><body><h1>404</h1></body></html>'],
    ['STA-11 404 with no error in it', 404, { jsonrpc: '2.0' }],
    ['STA-11 404 with cut JSON', 404, '{"jsonrpc":"2.0","error":{"co'],
  ];
  for (const [what, status, body] of MEANS_LOST) {
    test(`${what}: one initialize, then success`, async t => {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const server = await forgetful(t, { refuse: response => response.writeHead(status).end(text) });
      const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
      await bridge.open();
      server.forget();
      assert.ok((await bridge.ask('tools/list')).result);
      assert.equal(server.asked('initialize').length, 2);
    });
  }

  test('STA-04 a 400 for another reason: the same session, no initialize', async t => {
    const wrong = { code: -32602, message: 'arguments are wrong' };
    const server = await forgetful(t, { play: (method, message, { response }) =>
      void (method === 'prompts/get' &&
        json(response, { jsonrpc: '2.0', id: message.id, error: wrong }, {}, 400)) });
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    const { error } = await bridge.ask('prompts/get', { name: 'x' });
    assert.match(JSON.stringify(error), /arguments are wrong/);
    assert.ok((await bridge.ask('tools/list')).result);
    assert.equal(server.asked('initialize').length, 1);
    assert.equal(server.seen.at(-1).headers['mcp-session-id'], 's1');
  });

  test('STA-07 twenty calls meet the 404: one initialize, twenty successes, one session', async t => {
    const server = await forgetful(t);
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    server.forget();
    const all = await Promise.all(Array.from({ length: 20 }, () => bridge.ask('tools/list')));
    for (const answer of all) assert.ok(answer.result, JSON.stringify(answer));
    assert.equal(server.asked('initialize').length, 2);
    assert.equal(server.sessions.size, 1);
  });

  test('STA-07 a late 404 for the old id starts nothing: the call goes to the new one', async t => {
    const server = await forgetful(t, { refuse: async (response, { method }) => {
      if (method === 'prompts/list') await sleep(500);
      json(response, LOST, {}, 404);
    } });
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    server.forget();
    const [late, early] = await Promise.all([bridge.ask('prompts/list'), bridge.ask('tools/list')]);
    assert.ok(late.result && early.result);
    assert.equal(server.asked('initialize').length, 2);
    assert.deepEqual(server.asked('prompts/list').map(row => row.headers['mcp-session-id']), ['s1', 's2']);
  });

  test('STA-08 recovery has an end: a server that knows no session', async t => {
    const server = await forgetful(t, { play: (method, message, { request, response }) =>
      void (method !== 'initialize' && (message || request.method !== 'GET') &&
        json(response, LOST, {}, 404)) });
    const bridge = byHand(t, server.url, LEGACY);
    await bridge.open();
    await sleep(300);
    assert.equal(server.asked('initialize').length, 1, 'nothing without a call');
    const began = performance.now();
    assert.match((await bridge.ask('tools/list')).error.message, /HTTP 404/);
    assert.ok(performance.now() - began < 10000);
    assert.ok(server.asked('initialize').length <= 2);
    // Ten in a row, as fast as they fail: from the third on, a second or more between two.
    const stop = performance.now() + 6000;
    for (let i = 0; i < 10 && performance.now() < stop; i++) await bridge.ask('tools/list', undefined, 10000);
    const at = server.asked('initialize').map(row => row.at).slice(2);
    assert.ok(at.length >= 2);
    at.slice(1).forEach((time, i) => assert.ok(time - at[i] >= 990, `${time - at[i]} ms`));
    assert.equal(wire(server).filter(line => line.startsWith('GET')).length,
      server.asked('initialize').length, 'the first GET of each session, whose 404 is no loss');
  });

  test('STA-08 a GET that goes elsewhere does not end the session', async t => {
    const server = await forgetful(t, { play: (method, message, { request, response }) =>
      void (request.method === 'GET' && json(response, LOST, {}, 404)) });
    const bridge = byHand(t, server.url, LEGACY);
    await bridge.open();
    for (let i = 0; i < 5; i++) assert.ok((await bridge.ask('tools/list')).result);
    assert.equal(server.asked('initialize').length, 1);
    assert.match(bridge.said, /there is no notification stream/);
    assert.equal(await bridge.close(), 0);
  });

  test('STA-12 an error with a made-up id ends the call within a second', async t => {
    const server = await forgetful(t, { play: (method, message, { response }) =>
      void (method === 'prompts/list' && json(response, { jsonrpc: '2.0', id: 'server-error',
        error: { code: -32000, message: 'made up' } }, {}, 400)) });
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    assert.ok((await bridge.ask('prompts/list', undefined, 1000)).error);
    assert.ok((await bridge.ask('tools/list')).result);
  });
});

suite('repeating', () => {
  test('RET-01 executed and then no answer: one error, executed once', async t => {
    let runs = 0;
    const server = await forgetful(t, { play: (method, message, { response }) => {
      if (method === 'tools/call') { runs++; response.destroy(); }
    } });
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    const { error } = await bridge.tool('pay');
    assert.match(error.message, /not known.*may have run, so it was not sent again/);
    await sleep(300);
    assert.equal(runs, 1);
    assert.equal(bridge.lines.length, 2, 'one answer');
  });

  test('RET-01 the session is unknown: once more after initialize, executed once', async t => {
    const server = await forgetful(t);
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    server.forget();
    assert.equal((await bridge.tool('pay')).result.content[0].text, 'run 1');
    assert.equal(server.runs(), 1);
  });

  test('RET-01 lists and ping under the same drop are asked again', async t => {
    const dropped = new Set();
    const server = await forgetful(t, { play: (method, message, { response }) => {
      if (!['tools/list', 'resources/list', 'ping'].includes(method) || dropped.has(method)) return;
      dropped.add(method);
      response.destroy();
    } });
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    for (const method of ['tools/list', 'resources/list', 'ping']) {
      assert.ok((await bridge.ask(method)).result, method);
      assert.equal(server.asked(method).length, 2);
    }
    assert.equal(server.asked('initialize').length, 1);
  });

  // The server has closed the kept connection, which shows when the next request is written.
  async function closing(t) {
    const answer = (connection, id, value, more = {}) => connection.send(rawAnswer(200,
      { 'Content-Type': 'application/json', ...more },
      JSON.stringify({ jsonrpc: '2.0', id, result: value })));
    return rawPeer(t, async (connection, request, peer) => {
      const { id, method } = JSON.parse(request.body || '{}');
      if (connection.isOld) {
        peer.dropped = (peer.dropped ?? 0) + 1;
        return connection.reset();
      }
      if (method === 'initialize') await answer(connection, id, INFO, { 'Mcp-Session-Id': 's' });
      else if (id === undefined) await connection.send(rawAnswer(202, {}));
      else await answer(connection, id, { tools: [], content: [] });
      if (method === 'tools/list') connection.isOld = true;
      return undefined;
    });
  }

  test('RET-02 a list on a kept connection that was closed: success on a fresh one', async t => {
    const peer = await closing(t);
    const bridge = byHand(t, peer.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    assert.ok((await bridge.ask('tools/list')).result);
    assert.ok((await bridge.ask('tools/list')).result);
    assert.equal(peer.dropped, 1);
  });

  test('RET-02 a call on such a connection: an error, not a second try', async t => {
    const peer = await closing(t);
    const bridge = byHand(t, peer.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    assert.ok((await bridge.ask('tools/list')).result);
    assert.match((await bridge.tool('pay')).error.message, /may have run, so it was not sent again/);
    const calls = peer.requests.filter(request => request.body.includes('tools/call'));
    assert.equal(calls.length, 1);
  });

  test('RET-02 the first use of a connection that fails is not repeated', async t => {
    const peer = await rawPeer(t, connection => connection.reset());
    const outcome = await inspect([...LEGACY, peer.url, 'ping']);
    assert.equal(outcome.code, 1);
    assert.equal(peer.requests.length, 1);
  });

  test('RET-03 a slow request ends alone, the others and the session go on', async t => {
    const server = await forgetful(t, { play: (method, message, { response }) => {
      if (method === 'tools/call' && message.params.name === 'A') return response.flushHeaders();
      if (method === 'prompts/list') {
        return response.flushHeaders(), void setTimeout(() => response.end(JSON.stringify(
          { jsonrpc: '2.0', id: message.id, result: { prompts: [] } })), 800);
      }
      return undefined;
    } });
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET, '--timeout', '1']);
    await bridge.open();
    const began = performance.now();
    const [a, b] = await Promise.all([
      bridge.tool('A').then(answer => ({ answer, ms: performance.now() - began })),
      bridge.ask('prompts/list')]);
    assert.match(a.answer.error.message, /no answer within 1\.0 s/);
    assert.ok(a.ms >= 950 && a.ms < 1800, `${a.ms} ms`);
    assert.ok(b.result);
    assert.ok((await bridge.ask('tools/list')).result);
    assert.equal(server.asked('initialize').length, 1);
    assert.equal(server.seen.at(-1).headers['mcp-session-id'], 's1');
  });
});

suite('resuming', () => {
  // Two calls at once whose streams are cut; the events of both are numbered together.
  async function cutting(t, { again }) {
    const taken = [];
    const event = (id, value) => `id: ${id}\ndata: ${JSON.stringify(value)}\n\n`;
    const log = text => ({ jsonrpc: '2.0', method: 'notifications/message',
      params: { level: 'info', data: text } });
    const server = await forgetful(t, { play: (method, message, { request, response }) => {
      if (request.method === 'GET') {
        const last = request.headers['last-event-id'];
        taken.push(last);
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        return void response.end(again(Number(last), event, log));
      }
      if (method !== 'tools/call') return undefined;
      const first = message.params.name === 'P1' ? 1 : 2;
      server.ids[first] = message.id;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`retry: 20\n${event(first, log(`e${first}`))}`);
      return void setTimeout(() => response.destroy(), 30);
    } });
    server.ids = {};
    return Object.assign(server, { taken });
  }

  test('RES-02 each stream is taken up at its own event, and each message is seen once', async t => {
    const server = await cutting(t, { again: (last, event, log) =>
      event(last + 2, log(`e${last + 2}`)) +
      event(last + 4, { jsonrpc: '2.0', id: server.ids[last],
        result: { content: [{ type: 'text', text: `P${last}` }] } }) });
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    const [one, two] = await Promise.all([bridge.tool('P1'), bridge.tool('P2')]);
    assert.equal(one.result.content[0].text, 'P1');
    assert.equal(two.result.content[0].text, 'P2');
    assert.deepEqual(server.taken.sort(), ['1', '2']);
    const logged = bridge.lines.map(line => JSON.parse(line)).filter(m => m.method).map(m => m.params.data);
    assert.deepEqual(logged.sort(), ['e1', 'e2', 'e3', 'e4']);
  });

  test('PAR-01 PAR-04 a cut event is no event; the last whole id is the one resumed from', async t => {
    const taken = [];
    let id;
    const server = await forgetful(t, { play: (method, message, { request, response }) => {
      const head = { 'content-type': 'text/event-stream' };
      if (request.method === 'GET') {
        taken.push(request.headers['last-event-id']);
        response.writeHead(200, head);
        return void response.end(`data: {"jsonrpc":"2.0","id":${id},"result":{"content":[]}}\r\n\r\n`);
      }
      if (method !== 'tools/call') return undefined;
      id = message.id;
      response.writeHead(200, head);
      return void response.end(`retry: 20\nid: 1\ndata:\n\nid: 2\ndata\n\n:c\n\nid: 3\n\n` +
        `id: 4\ndata: {"jsonrpc":"2.0","id":${id},"result":{"cut":1}}`);
    } });
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    assert.deepEqual((await bridge.tool('x')).result, { content: [] });
    assert.deepEqual(taken, ['3']);
  });
});

const agreed = protocolVersion => ({ ...INFO, protocolVersion });

// A server that takes no other version than the one it agreed to with that session.
const strict = (t, versions) => forgetful(t, {
  info: count => agreed(versions[count - 1]),
  play: (method, message, { request, response }) => {
    const sent = request.headers['mcp-protocol-version'];
    const session = request.headers['mcp-session-id'];
    if (method === 'initialize') assert.equal(sent, undefined);
    else if (sent !== versions[session?.slice(1) - 1]) response.writeHead(400).end('wrong version');
  } });

suite('versions', () => {
  test('VER-01 VER-02 a counter-offer is taken and sent from then on; initialize carries none', async t => {
    const server = await strict(t, ['2025-03-26']);
    const bridge = byHand(t, server.url, LEGACY);
    const opened = await bridge.open();
    assert.equal(opened.result.protocolVersion, '2025-03-26');
    assert.ok((await bridge.ask('tools/list')).result);
    assert.equal(await bridge.close(), 0);
    assert.ok(server.seen.length >= 4);
    assert.equal(server.sessions.size, 0, 'DELETE had it too');
  });

  test('VER-02 another version after a recovery: used where nobody was told the old one', async t => {
    const server = await strict(t, ['2025-06-18', '2025-03-26']);
    let lists = 0;
    server.server.prependListener('request', request => {
      if (request.method === 'POST' && ++lists === 4) server.forget();
    });
    const outcome = await inspect(['-i', ...LEGACY, ...QUIET, server.url],
      { input: 'tools\ntools\ntools\n' });
    assert.equal(outcome.code, 1, 'the second list was lost');
    assert.equal(server.seen.at(-2).headers['mcp-protocol-version'], '2025-03-26');
    assert.ok(!outcome.stderr.includes('wrong version'), outcome.stderr);
  });

  test('VER-02 a host was told the old one: it is asked to start again', async t => {
    const server = await strict(t, ['2025-06-18', '2025-03-26']);
    const bridge = byHand(t, server.url, [...LEGACY, ...QUIET]);
    await bridge.open();
    server.forget();
    bridge.send({ jsonrpc: '2.0', id: 9, method: 'tools/list' });
    assert.equal(await bridge.ended, 1);
    assert.match(bridge.said, /now speaks 2025-03-26 in place of 2025-06-18; start again/);
    assert.equal(server.sessions.size, 0, 'and the new session was deleted');
  });

  test('VER-01 a version that nobody knows ends in a sentence', async t => {
    const server = await forgetful(t, { info: () => agreed('2099-01-01') });
    const outcome = await inspect([...LEGACY, server.url, 'tools']);
    assert.equal(outcome.code, 1);
    assert.match(outcome.stderr, /wants the protocol version "2099-01-01", which is not known/);
  });
});

suite('logins and addresses of others', () => {
  const challenging = (t, { metadata, challenge = 'Bearer', options } = {}) => played(t,
    (method, message, { request, response }) => {
      if (!request.url.startsWith('/.well-known/')) {
        const words = challenge.replace('HOST', request.headers.host);
        response.writeHead(401, { 'www-authenticate': words, 'set-cookie': 'x=s3cret' }).end();
      } else if (metadata?.[request.url]) json(response, metadata[request.url]);
      else response.writeHead(404).end();
    }, options);
  const WELL_KNOWN = '/.well-known/oauth-protected-resource';

  test('AUT-02 the document is asked with the path inserted, then at the root', async t => {
    const at = { authorization_servers: ['https://login.example/'] };
    for (const [place, count] of [[`${WELL_KNOWN}/team/a/mcp`, 1], [WELL_KNOWN, 2]]) {
      const server = await challenging(t, { metadata: { [place]: at } });
      const outcome = await inspect([...LEGACY, server.url.replace('/mcp', '/team/a/mcp'), 'tools']);
      assert.match(outcome.stderr, /Log in at https:\/\/login\.example\/ and/);
      assert.deepEqual(server.seen.slice(1).map(row => row.url),
        [`${WELL_KNOWN}/team/a/mcp`, WELL_KNOWN].slice(0, count));
    }
  });

  test('AUT-01 https outside: the document is asked there, its address is believed from there', async t => {
    const authority = new Authority(t);
    const options = { create: https.createServer, options: authority.issue('IP:127.0.0.1') };
    const metadata = { [`${WELL_KNOWN}/mcp`]: { authorization_servers: ['https://login.example/'] } };
    const server = await challenging(t, { metadata, options,
      challenge: `Bearer resource_metadata="http://10.0.0.5:8000${WELL_KNOWN}/mcp"` });
    const outcome = await inspect([...LEGACY, '--cacert', authority.file, server.url, 'tools']);
    assert.match(outcome.stderr,
      /note: the server names http:\/\/10\.0\.0\.5:8000\/\S+ for its login, which is not asked/);
    assert.match(outcome.stderr, /Log in at https:\/\/login\.example\/ and/);
  });

  test('SEC-04 an address that a shell would act on is not shown, and nothing runs', async t => {
    const trap = path.join(folder(t), 'p');
    const evil = ['file:///c:/x', `a:$(touch ${trap})`, 'https://a.example/$(id)', 'https://a.example/`id`',
      'https://a.example/" & calc', 'javascript:1', '-flag', `https://a.example/;touch ${trap}`];
    for (const address of evil) {
      const server = await challenging(t,
        { metadata: { [`${WELL_KNOWN}/mcp`]: { authorization_servers: [address] } } });
      const outcome = await inspect([...LEGACY, server.url, 'tools']);
      assert.equal(outcome.code, 1);
      assert.match(outcome.stderr, /It does not say where to log in/);
      assert.ok(!outcome.stderr.includes(address), outcome.stderr);
    }
    assert.ok(!existsSync(trap));
  });

  test('SEC-08 metadata at another origin over http is not asked; at home it is', async t => {
    let asked = 0;
    const other = await played(t, () => { asked++; });
    for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]']) {
      const server = await challenging(t,
        { challenge: `Bearer resource_metadata="http://${host}:${other.port}/x"` });
      const outcome = await inspect([...LEGACY, server.url, 'tools']);
      assert.match(outcome.stderr, /which is not asked: it is neither https nor at the server itself/);
    }
    assert.equal(asked, 0);
    const server = await challenging(t, {
      challenge: 'Bearer resource_metadata="http://HOST/.well-known/mine"',
      metadata: { '/.well-known/mine': { authorization_servers: ['http://127.0.0.1:9/login'] } } });
    const outcome = await inspect([...LEGACY, server.url, 'tools']);
    assert.match(outcome.stderr, /Log in at http:\/\/127\.0\.0\.1:9\/login and/);
  });

  test('SEC-08 https elsewhere at a private address: no connection', async t => {
    const connections = [];
    const authority = new Authority(t);
    const other = await played(t, () => {},
      { create: https.createServer, options: authority.issue('DNS:localhost') });
    other.server.on('connection', () => connections.push(1));
    const server = await challenging(t,
      { challenge: `Bearer resource_metadata="https://localhost:${other.port}/x"` });
    const outcome = await inspect([...LEGACY, '--cacert', authority.file, server.url, 'tools']);
    assert.match(outcome.stderr, /It does not say where to log in/);
    assert.equal(connections.length, 0);
  });

  test('COO-03 metadata elsewhere gets no cookie and no token, and sets none', async t => {
    const authority = new Authority(t);
    const seen = [];
    const other = await played(t, (method, message, { request, response }) => {
      seen.push(request.headers);
      json(response, { authorization_servers: ['https://login.example/'] }, { 'set-cookie': 'x=theirs' });
    }, { create: https.createServer, options: authority.issue('IP:127.0.0.1') });
    let calls = 0;
    const server = await played(t, (method, message, { request, response }) => {
      if (method === 'initialize') {
        return void result(response, message, INFO, { 'set-cookie': 'x=1; Domain=0.0.1; Path=/' });
      }
      if (method !== 'tools/list' || calls++) return message?.id === undefined ? undefined : { tools: [] };
      return void response.writeHead(401,
        { 'www-authenticate': `Bearer resource_metadata="${other.url}"` }).end();
    });
    const outcome = await inspect(['-i', '--cookie-jar', '--bearer', 'tok', '--cacert', authority.file,
      ...LEGACY, server.url], { input: 'tools\ntools\n' });
    assert.match(outcome.stderr, /Log in at https:\/\/login\.example\//);
    assert.equal(seen.length, 1);
    assert.equal(seen[0].cookie, undefined);
    assert.equal(seen[0].authorization, undefined);
    const later = server.seen.filter(row => row.message?.method === 'tools/list');
    assert.equal(later.at(-1).headers.cookie, 'x=1');
  });

  for (const where of ['http://169.254.169.254/x', 'http://127.0.0.1:9/', 'https://elsewhere.example/']) {
    test(`SEC-08 a redirect to ${where} is not followed, credentials stay`, async t => {
      const server = await played(t, (method, message, { response }) =>
        void response.writeHead(307, { location: where }).end());
      const outcome = await inspect([...LEGACY, '--bearer', 'tok', server.url, 'tools']);
      assert.equal(outcome.code, 1);
      assert.match(outcome.stderr, /another origin, which is not followed/);
      const bridge = byHand(t, server.url, [...LEGACY, '--bearer', 'tok']);
      assert.match((await bridge.open()).error.message, /another origin, which is not followed/);
    });
  }

  test('SEC-08 an endpoint event of another origin gets no message', async t => {
    const other = await tiny(t);
    const server = await played(t, (method, message, { request, response }) => {
      if (request.method !== 'GET') return;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`event: endpoint\ndata: ${other.url}\n\n`);
    });
    const bridge = byHand(t, server.url, ['--transport', 'sse', '--bearer', 'tok']);
    assert.match((await bridge.open()).error.message, /endpoint of another origin/);
    assert.equal(other.requests.length, 0);
  });
});

suite('secrets', () => {
  test('SEC-05 a full run of both commands: no secret on a screen or in a log', async t => {
    const secrets = ['tok-SECRET-1', 'ck-SECRET-2', 's-SECRET-3', 'SECRET-4', 'SECRET-5'];
    const dir = folder(t);
    const server = await played(t, (method, message, { request, response }) => {
      response.setHeader('set-cookie', `lb=${secrets[1]}; Path=/`);
      if (method === 'initialize') {
        return void result(response, message, INFO, { 'mcp-session-id': secrets[2] });
      }
      if (method === 'tools/call') return { content: [{ type: 'text', text: 'fine' }] };
      if (method === 'prompts/list') return void response.writeHead(500).end('no');
      if (request.method === 'DELETE') return void response.writeHead(200).end();
      return message?.id === undefined ? undefined : {};
    });
    const flags = ['--cookie-jar', '--bearer', secrets[0], '--header', 'X-Api-Key: SECRET-1b'];
    const url = `${server.url}?sessionId=${secrets[3]}&key=SECRET-4b`;
    const logs = [path.join(dir, 'a'), path.join(dir, 'b')];
    const bridge = byHand(t, url, [...flags, '--log-file', logs[0]]);
    await bridge.open();
    assert.ok((await bridge.tool('x', { argument: secrets[4] })).result);
    assert.ok((await bridge.ask('prompts/list')).error);
    assert.equal(await bridge.close(), 0);
    const outcome = await inspect(['-i', ...flags, '--log-file', logs[1], url],
      { input: `call x {"argument":"${secrets[4]}"}\nprompts\n` });
    const texts = { said: bridge.said, lines: bridge.lines.join('\n'),
      stdout: outcome.stdout, stderr: outcome.stderr,
      log0: readFileSync(logs[0], 'utf8'), log1: readFileSync(logs[1], 'utf8') };
    for (const [what, text] of Object.entries(texts)) {
      assert.ok(!text.includes('SECRET'), `${what}: ${text}`);
    }
    const session = text => new Set([...text.matchAll(/mcp-session-id: (#\w+)/gi)].map(m => m[1]));
    for (const log of [texts.log0, texts.log1]) assert.equal(session(log).size, 1, 'one session, one digest');
  });
});
