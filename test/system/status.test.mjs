// The status rules [G6]: what a client is told about its session, on POST, GET, DELETE and old SSE,
// whatever the replicas say. The case codes are those of the field cases STA.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { gateway, keyFile, newKey } from './lib/gateway.mjs';
import { openEvents, send } from './lib/http.mjs';
import { freePort } from './lib/ports.mjs';
import { rawAnswer, rawPeer } from './lib/raw.mjs';
import { conf, everything, oldSse, urls } from './lib/replicas.mjs';
import { answerOf, assertLost, assertRpcError, initialize, notification, post, POST_HEADERS,
  request, Session, SESSION, toolCall } from './lib/rpc.mjs';
import { tinies, tiny } from './lib/tiny.mjs';

// All three methods say that the session is lost.
async function assertAllLost(url, id) {
  const headers = { [SESSION]: id, accept: 'text/event-stream' };
  assertLost(await post(url, request('p-1', 'tools/list'), { [SESSION]: id }), 'p-1');
  assertLost(await send(url, { headers }));
  assertLost(await send(url, { method: 'DELETE', headers }));
}

const rpcError = (code, message, id = null) =>
  JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id });

// A raw replica that opens a session for every initialize and says `answer()` to all else.
const minting = (t, answer) => rawPeer(t, (connection, { body }) => connection.send(
  body.includes('"initialize"')
    ? rawAnswer(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'u1' },
      '{"jsonrpc":"2.0","id":0,"result":{}}')
    : answer()));

suite('a session id that is good for nothing is 404, a missing one 400', () => {
  test('STA-01 an unknown id: POST, GET and DELETE', async t => {
    const replicas = await tinies(t, 2);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    await assertAllLost(limpet.url, crypto.randomUUID());
    for (const replica of replicas) assert.equal(replica.requests.length, 0);
  });

  test('STA-01 no id is 400 once this server is known to mint ids', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 2)) });
    await Session.open(limpet.url);
    assertRpcError(await post(limpet.url, request(4, 'tools/list')),
      { status: 400, code: -32000, id: 4 });
    const stream = await send(limpet.url, { headers: { accept: 'text/event-stream' } });
    assert.equal(stream.status, 400);
    const ended = await send(limpet.url, { method: 'DELETE' });
    assert.equal(ended.status, 400);
  });

  test('STA-01 no id before anything is known: the replica\'s 400, in our words', async t => {
    const replicas = await tinies(t, 2);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    assertRpcError(await post(limpet.url, request('q', 'tools/list')),
      { status: 400, code: -32000, id: 'q' });
    assert.equal(replicas.flatMap(r => r.requests).length, 1);
  });

  test('STA-01 broken JSON with a good id is 400 and the session still works', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 2)) });
    const session = await Session.open(limpet.url);
    for (const body of ['{"jsonrpc":"2.0","id":1,', '', 'null x', '{"a":1}}', '\u0000']) {
      const answer = await session.post(body);
      assertRpcError(answer, { status: 400, code: -32700, id: answer.json.id });
      assert.ok([null, 1].includes(answer.json.id), 'null, or the id as far as it was readable');
    }
    await session.tool('whoami');
  });

  for (const lost of [400, 404]) {
    test(`STA-01 a replica that lost the session says ${lost}: the client sees 404`, async t => {
      const replica = await tiny(t, 'r1', { lost });
      const limpet = await gateway(t, { replicas: [replica.url] });
      const session = await Session.open(limpet.url);
      replica.sessions.clear();
      await assertAllLost(limpet.url, session.id);
      assertLost(await session.post(notification('notifications/cancelled', { requestId: 1 })));
      const response = await session.post('{"jsonrpc":"2.0","id":7,"result":{}}');
      assertLost(response, response.json.id);
      assert.ok([7, null].includes(response.json.id));
    });
  }

  test('STA-06 initialize with any stale id opens a new session without it', async t => {
    const replicas = await tinies(t, 2);
    const key = keyFile(t, newKey());
    const limpet = await gateway(t, { replicas: urls(replicas), key });
    const other = await gateway(t, { replicas: urls(replicas) });
    const live = await Session.open(limpet.url);
    const foreign = await Session.open(other.url);
    for (const stale of ['unknown', crypto.randomUUID(), foreign.id, live.id]) {
      const answer = await post(limpet.url, initialize(1), { [SESSION]: stale });
      assert.equal(answer.status, 200, answer.text);
      assert.ok(answer.headers[SESSION]);
      assert.notEqual(answer.headers[SESSION], stale);
    }
    await live.tool('whoami');
    const initializes = replicas.flatMap(r => r.requests)
      .filter(r => r.json?.method === 'initialize');
    assert.equal(initializes.length, 6);
    for (const seen of initializes) assert.equal(seen.headers[SESSION], undefined);
  });

  test('STA-12 the error carries the id exactly as it was sent', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)) });
    const ids = ['7', '"7"', '"abc-ü"', '"abc-\\u00fc"', '9007199254740993', '-0', '0', '""',
      '"\\n\\"\\\\"', '123456789012345678901234567890'];
    for (const id of ids) {
      const body = `{"jsonrpc":"2.0","method":"tools/list","id":${id}}`;
      const answer = await post(limpet.url, body, { [SESSION]: 'gone' });
      assertRpcError(answer, { status: 404, code: -32001, rawId: id });
    }
    for (const id of ['1.0', '1e2']) { // no id of MCP, but what it was is still said
      const odd = await post(limpet.url, `{"jsonrpc":"2.0","method":"ping","id":${id}}`);
      assertRpcError(odd, { status: 400, code: -32600, rawId: id });
    }
    const noted = await post(limpet.url, notification('notifications/initialized'),
      { [SESSION]: 'gone' });
    assert.equal(noted.status, 404);
    assert.ok(noted.text === '' || noted.json.id === null);
  });

  test('STA-12 a replica that answers 404 with another id: ours is echoed', async t => {
    const lost = rawAnswer(404, { 'Content-Type': 'application/json' },
      '{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}');
    const peer = await minting(t, () => lost);
    const limpet = await gateway(t, { replicas: [peer.url] });
    const opened = await post(limpet.url, initialize(0));
    assertLost(await post(limpet.url, request(3, 'tools/list'),
      { [SESSION]: opened.headers[SESSION] }), 3);
  });
});

suite('every way to lose a session', () => {
  test('after a restart of the gateway, kill -9 too, sessions go on', async t => {
    const replicas = urls(await conf(t, 2));
    const limpet = await gateway(t, { replicas });
    const session = await Session.open(limpet.url);
    const owner = await session.tool('whoami');
    for (const signal of ['SIGKILL', 'SIGTERM']) {
      await limpet.restart({ signal });
      assert.equal(await session.tool('whoami'), owner);
    }
    assert.equal((await session.delete()).status, 200);
    await assertAllLost(limpet.url, session.id);
  });

  test('a ticket of another server entry', async t => {
    const limpet = await gateway(t, { servers: [
      { name: 'a', path: '/a', replicas: urls(await tinies(t, 1)) },
      { name: 'b', path: '/b', replicas: urls(await tinies(t, 1)) }] });
    const session = await Session.open(limpet.at('/a'));
    await assertAllLost(limpet.at('/b'), session.id);
    await session.tool('whoami');
  });

  test('a ticket over its age limit', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)),
      server: { ticket_age: '1s' } });
    const session = await Session.open(limpet.url);
    await session.tool('whoami');
    await new Promise(resolve => setTimeout(resolve, 1200));
    await assertAllLost(limpet.url, session.id);
    await limpet.record(r => r.reason === 'session_expired');
  });

  test('a replica restarted empty on its address (the reference server says 400)', async t => {
    const replicas = await everything(t, 2);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const sessions = [await Session.open(limpet.url), await Session.open(limpet.url)];
    const whoami = async session => JSON.parse(await session.tool('get-env')).NAME;
    const owners = await Promise.all(sessions.map(whoami));
    assert.equal(new Set(owners).size, 2);
    const [dead, alive] = sessions;
    const replica = replicas.find(r => r.name === owners[0]);
    await replica.kill();
    await replica.start();
    await new Promise(resolve => setTimeout(resolve, 600));
    await assertAllLost(limpet.url, dead.id);
    assert.equal(await whoami(alive), owners[1]);
    await Session.open(limpet.url);
  });

  test('the five causes give one and the same body and five reasons in log and metrics', async t => {
    const [one, two, three] = await tinies(t, 3);
    const [oldKey, nextKey] = [newKey(), newKey()];
    const both = [{ name: 'a', path: '/a', replicas: urls([one, two]), balance: 'round_robin' },
      { name: 'b', path: '/b', replicas: urls([three]) }];
    const limpet = await gateway(t, { servers: both, key: keyFile(t, oldKey),
      flags: ['--threads', '1'] }); // round robin is each thread's own
    const unknownKey = await Session.open(limpet.at('/a'));
    limpet.key = keyFile(t, nextKey);
    await limpet.restart();
    const here = await Session.open(limpet.at('/a'));
    const left = await Session.open(limpet.at('/a'));
    limpet.config.servers[0].replicas = [one.url];
    await limpet.restart();
    one.sessions.clear();
    const other = await Session.open(limpet.at('/b'));
    const ids = { session_forged: 'forged', session_unknown_key: unknownKey.id,
      session_no_replica: left.id, session_lost: here.id, session_other_server: other.id };
    const bodies = new Set();
    for (const [reason, id] of Object.entries(ids)) {
      const answer = await post(limpet.at('/a'), request(1, 'ping'), { [SESSION]: id });
      assertLost(answer, 1);
      bodies.add(answer.text);
      await limpet.record(r => r.reason === reason);
    }
    assert.equal(bodies.size, 1, [...bodies].join('\n'));
    const { text } = await limpet.admin('/metrics');
    for (const reason of Object.keys(ids)) {
      assert.match(text, new RegExp(`reason="${reason}"\\} 1$`, 'm'));
    }
  });

  test('old SSE: a token that does not open, was altered, or is of another entry', async t => {
    const replicas = urls(await oldSse(t, 1));
    const entry = name => ({ name, path: `/${name}/mcp`, sse_path: `/${name}/sse`,
      sse_upstream: '/sse', replicas });
    const limpet = await gateway(t, { servers: [entry('a'), entry('b')] });
    const stream = await openEvents(limpet.at('/a/sse'),
      { headers: { accept: 'text/event-stream' } });
    const { data } = await stream.events.until(r => r.events[0]);
    const endpoint = new URL(data, limpet.at('/a/sse'));
    assert.equal((await post(endpoint, initialize(1))).status, 202);
    const token = endpoint.searchParams.get('lp');
    for (const at of [0, 4, 10, 30, token.length >> 1, token.length - 1]) {
      const altered = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
      endpoint.searchParams.set('lp', altered);
      assertLost(await post(endpoint, request(2, 'ping')), 2);
    }
    endpoint.searchParams.set('lp', token);
    endpoint.pathname = '/b/sse';
    assertLost(await post(endpoint, request(3, 'ping')), 3);
    endpoint.pathname = '/a/sse';
    endpoint.search = '';
    assertRpcError(await post(endpoint, request(4, 'ping')), { status: 400, id: 4 });
    stream.close();
  });
});

suite('what is not a lost session passes', () => {
  const DIALECTS = ['Bad Request: No valid session ID provided', 'Session not found',
    '{"error":"initialize the MCP session first"}',
    '{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}'];

  test('a tool result that holds the very words of a dialect', async t => {
    const limpet = await gateway(t, { replicas: urls(await conf(t, 1)) });
    const session = await Session.open(limpet.url);
    for (const text of DIALECTS) assert.equal(await session.tool('say', { text }), text);
  });

  // status, body, whether the gateway takes it for a lost session
  const ANSWERS = [
    [400, rpcError(-32000, 'Bad Request: Server not initialized'), true],
    [400, '{"error":"initialize the MCP session first"}', true],
    [400, 'Session ID not found.', true],
    [400, 'session not found', true],
    [422, 'Unexpected message, expect initialize request', true],
    [404, '', true],
    [404, 'Not Found', true],
    [404, '<html>no</html>', true],
    [400, rpcError(-32600, 'Session not found'), true],
    [400, rpcError(-32000, 'Bad Request: No valid session ID provided', 'server-error'), true],
    [404, rpcError(-32601, 'Method not found', 1), false],
    [400, rpcError(-32602, 'Bad Request: Server not initialized'), false],
    [400, rpcError(-32000, 'Bad Request: Server not initialized!'), false],
    [400, rpcError(-32000, 'Bad Request: Server not initialized', 1), false],
    [400, 'the session not found', false],
    [422, 'Unexpected message', false],
    [403, 'session not found', false],
    [429, 'slow down', false],
    [500, 'session not found', false],
  ];
  test('each dialect exactly, and nothing that only looks like one', async t => {
    let next;
    const peer = await minting(t, () =>
      rawAnswer(next[0], { 'Content-Type': 'text/plain', 'X-Its': 'own' }, next[1]));
    const limpet = await gateway(t, { replicas: [peer.url] });
    for (next of ANSWERS) {
      const id = (await post(limpet.url, initialize(0))).headers[SESSION];
      const answer = await post(limpet.url, toolCall(1, 'x'), { [SESSION]: id });
      if (next[2]) {
        assertLost(answer, 1);
      } else {
        assert.deepEqual([answer.status, answer.text], next.slice(0, 2));
        assert.equal(answer.headers['x-its'], 'own');
      }
    }
  });

  test('a dialect of the configuration', async t => {
    const peer = await minting(t, () => rawAnswer(410, {}, 'who are you?'));
    const limpet = await gateway(t, { replicas: [peer.url],
      server: { lost_dialects: [{ status: 410, text: 'who are you?' }] } });
    const id = (await post(limpet.url, initialize(0))).headers[SESSION];
    assertLost(await post(limpet.url, request(1, 'ping'), { [SESSION]: id }), 1);
  });

  test('401 and 403 pass untouched; without credentials a lost session is 401 again', async t => {
    const challenge = 'Bearer resource_metadata="https://mcp.example/.well-known/x"';
    const peer = await rawPeer(t, (connection, { header, body }) => {
      const credential = header('authorization');
      if (credential === undefined) {
        return connection.send(rawAnswer(401, { 'WWW-Authenticate': challenge }, 'who?'));
      }
      if (credential === 'Bearer weak') return connection.send(rawAnswer(403, {}, 'no'));
      return connection.send(rawAnswer(200, { 'Content-Type': 'application/json',
        'Mcp-Session-Id': 'u1' }, `{"jsonrpc":"2.0","id":0,"result":{"sent":${body.length}}}`));
    });
    const limpet = await gateway(t, { replicas: [peer.url] });
    const opened = await post(limpet.url, initialize(0), { authorization: 'Bearer good' });
    const id = opened.headers[SESSION];
    const weak = await post(limpet.url, request(1, 'ping'),
      { [SESSION]: id, authorization: 'Bearer weak' });
    assert.deepEqual([weak.status, weak.text], [403, 'no']);
    const none = await post(limpet.url, request(1, 'ping'), { [SESSION]: id });
    assert.deepEqual([none.status, none.headers['www-authenticate']], [401, challenge]);
    const lost = await post(limpet.url, request(1, 'ping'), { [SESSION]: 'unknown' });
    assert.deepEqual([lost.status, lost.headers['www-authenticate']], [401, challenge]);
    assertLost(await post(limpet.url, request(1, 'ping'),
      { [SESSION]: 'unknown', authorization: 'Bearer good' }), 1);
  });

  test('the challenge is the same through every thread, whichever saw it', async t => {
    const challenge = ['Bearer resource_metadata="https://mcp.example/x"', 'Basic realm="a"'];
    const peer = await rawPeer(t, connection =>
      connection.send(rawAnswer(401, { 'WWW-Authenticate': challenge }, 'who?')));
    const limpet = await gateway(t, { replicas: [peer.url], flags: ['--threads', '4'] });
    assert.equal((await post(limpet.url, initialize(0))).status, 401);
    await new Promise(resolve => setTimeout(resolve, 100));
    const seen = new Set();
    for (let i = 0; i < 40; i++) { // each on a connection, and so on a thread, of its own
      const answer = await post(limpet.url, request(1, 'ping'), { [SESSION]: 'unknown' });
      seen.add(`${answer.status} ${answer.headers['www-authenticate']}`);
    }
    assert.deepEqual([...seen], [`401 ${challenge.join(', ')}`]);
  });

  test('Go clients get a lost session as plain text', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)) });
    const answer = await post(limpet.url, request(1, 'ping'),
      { [SESSION]: 'gone', 'user-agent': 'Go-http-client/1.1' });
    assert.equal(answer.status, 404);
    assert.match(answer.headers['content-type'], /^text\/plain/);
    assert.equal(answer.json, undefined);
    const inside = await post(limpet.url, request(1, 'ping'),
      { [SESSION]: 'gone', 'user-agent': 'my Go-http-client/1.1' });
    assertLost(inside, 1);
  });

  test('a server without sessions: no id is made, demanded or passed on', async t => {
    const replicas = await tinies(t, 3, { mintsIds: false });
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const opened = await post(limpet.url, initialize(0));
    assert.equal(opened.status, 200);
    assert.equal(opened.headers[SESSION], undefined);
    const owners = new Set();
    for (let i = 0; i < 9; i++) {
      const answer = await post(limpet.url, toolCall(i, 'whoami'));
      assert.equal(answer.status, 200, answer.text);
      owners.add(answerOf(answer).result.content[0].text);
    }
    assert.equal(owners.size, 3, 'any replica will do');
  });

  test('STA-11 GET of a server without a stream is its 405, with Allow', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)) });
    const session = await Session.open(limpet.url);
    const answer = await session.get();
    assert.equal(answer.status, 405);
    assert.match(answer.headers.allow, /POST/);
  });

  test('STA-11 every error made by the gateway has a complete body', async t => {
    const dead = await freePort();
    const limpet = await gateway(t, { servers: [
      { name: 'a', path: '/a', replicas: urls(await tinies(t, 1)), body_limit: '1KiB' },
      { name: 'dead', path: '/dead', replicas: [`http://127.0.0.1:${dead}/mcp`] }] });
    await Session.open(limpet.at('/a'));
    const at = limpet.at('/a');
    const ping = request(1, 'ping');
    const made = [
      [400, () => post(at, ping), 1],
      [400, () => post(at, '{'), null],
      [404, () => post(at, ping, { [SESSION]: 'x' }), 1],
      [404, () => post(limpet.at('/nothing'), ping), undefined],
      [403, () => post(at, ping, { host: 'evil.example' }), undefined],
      [403, () => post(at, ping, { origin: 'http://evil.example' }), undefined],
      [405, () => send(at, { method: 'PUT', headers: POST_HEADERS, body: ping }), undefined],
      [413, () => post(at, request(1, 'x'.repeat(2000))), undefined],
      [415, () => post(at, ping, { 'content-type': 'text/plain' }), undefined],
      [503, () => post(limpet.at('/dead'), initialize(1)), 1],
    ];
    for (const [status, act, id] of made) {
      const answer = await act();
      assert.equal(answer.status, status, answer.text);
      assert.equal(answer.headers['cache-control'], 'no-store');
      assert.equal(answer.json?.jsonrpc, '2.0', `${status}: ${answer.text}`);
      assertRpcError(answer, { status, id: id === undefined ? answer.json.id : id });
      if (status === 405) assert.match(answer.headers.allow, /POST/);
      if (status === 503) assert.equal(answer.headers['retry-after'], '1');
    }
  });
});
