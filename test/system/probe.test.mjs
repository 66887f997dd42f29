// `limpet probe` against each situation that it tells apart, built from real parts: limpet replicas,
// the reference server, HAProxy, nginx. LIMPET_PROBE_RUNS repeats those that hang on chance.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { suite, test } from 'node:test';
import { haproxy, limpetReplicas, nginx } from './lib/fronts.mjs';
import { folder, gateway } from './lib/gateway.mjs';
import { freePort } from './lib/ports.mjs';
import { LIMPET, run, start } from './lib/proc.mjs';
import { everything, everythingSse, modernOnly } from './lib/replicas.mjs';
import { tiny } from './lib/tiny.mjs';
import { Authority, tlsFront } from './lib/tls.mjs';

const RUNS = Number(process.env.LIMPET_PROBE_RUNS ?? 5);
const MOST_MS = 10_000;
const EXIT = { healthy: 0, broken: 1, unknown: 2 };

const limpet = (args, options) => run(LIMPET, ['probe', ...args], { within: 60_000, ...options });

// The JSON of one probe, its exit status checked against its verdict.
async function probe(url, ...flags) {
  const { code, stdout, stderr } = await limpet(['--json', ...flags, url]);
  let seen;
  try { seen = JSON.parse(stdout); } catch { assert.fail(`no JSON: ${stdout}${stderr}`); }
  const isNobody = ['unreachable', 'web-page', 'no-endpoint'].includes(seen.situation);
  assert.equal(code, isNobody ? 3 : EXIT[seen.verdict], `exit status for ${stdout}`);
  assert.equal(stderr, '');
  assert.ok(seen.took_ms < MOST_MS + 1000 || flags.includes('--rest'), `${seen.took_ms} ms`);
  return seen;
}

function is(seen, verdict, situation, affinity) {
  const got = [seen.verdict, seen.situation, seen.affinity];
  assert.deepEqual(got, [verdict, situation, affinity], JSON.stringify(seen, null, 1));
}

const STICK = `balance roundrobin
  stick-table type string len 128 size 100k expire 1h
  stick store-response res.hdr(Mcp-Session-Id)
  stick match req.hdr(Mcp-Session-Id)`;

// A server inside the test: `answer(request, response, body)`.
async function serve(t, answer) {
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    answer(request, response, Buffer.concat(chunks).toString());
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => { server.closeAllConnections(); server.close(); });
  return `http://127.0.0.1:${server.address().port}/mcp`;
}

// A server below HTTP: `talk(socket)` once the request has begun.
async function raw(t, talk) {
  const sockets = new Set();
  const server = net.createServer(socket => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.once('data', () => talk(socket));
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => { for (const socket of sockets) socket.destroy(); server.close(); });
  return `http://127.0.0.1:${server.address().port}/mcp`;
}

const mcpFields = headers => Object.fromEntries(Object.entries(headers)
  .filter(([name]) => /^(mcp-|accept$|content-type$|allow$)/.test(name)));

// A front of the test's own: it waits, and gathers whole answers.
const behind = (t, inner, ms = 0) => serve(t, async (request, response, body) => {
  await new Promise(resolve => setTimeout(resolve, ms));
  try {
    const answer = await fetch(inner, { method: request.method, body: body || undefined,
      headers: mcpFields(request.headers) });
    response.writeHead(answer.status, mcpFields(Object.fromEntries(answer.headers)))
      .end(await answer.text());
  } catch { response.destroy(); }
});

suite('affinity', () => {
  test('no affinity, strict rotation (AFF-01)', async t => {
    for (const count of [2, 3]) {
      const url = await haproxy(t, await limpetReplicas(t, count), { backend: 'balance roundrobin' });
      const seen = await probe(url);
      is(seen, 'broken', 'rotation', 'none');
      assert.equal(seen.rotation, count);
      assert.deepEqual(seen.replicas, { estimate: count, low: count, high: count });
      assert.match(seen.row, count === 3 ? /^(xOx|Oxx|xxO)+/ : /^(xO|Ox)+/);
      assert.match(seen.fix, /limpet gateway http/);
      assert.deepEqual(seen.cookie, { offered: [], name: null });
      assert.equal(seen.sessions_left, 0);
    }
  });

  test('no affinity, at random; 3 and 12 replicas within a factor of two (AFF-01)', async t => {
    for (const count of [3, 12]) {
      const url = await haproxy(t, await limpetReplicas(t, count), { backend: 'balance random(1)' });
      let good = 0;
      for (let i = 0; i < RUNS; i++) {
        const seen = await probe(url);
        is(seen, 'broken', 'random', 'none');
        const { estimate, low, high } = seen.replicas;
        good += estimate >= count / 2 && estimate <= count * 2;
        assert.ok(low <= estimate && estimate <= high);
      }
      t.diagnostic(`${count} replicas: within a factor of two in ${good} of ${RUNS}`);
      assert.ok(good >= RUNS * 0.95, `${good} of ${RUNS} for ${count} replicas`);
    }
  });

  test('a hash on the session id: each session right or wrong as a whole (AFF-04)', async t => {
    const url = await haproxy(t, await limpetReplicas(t, 2),
      { backend: 'balance hdr(Mcp-Session-Id)' });
    const seen = await probe(url, '--sessions', '40', '--calls', '5');
    is(seen, 'broken', 'session-hash', 'session-hash');
    assert.match(seen.row, /^(O+|x+)$/);
    assert.ok(seen.ok / seen.calls > 0.2 && seen.ok / seen.calls < 0.8, `${seen.ok}/${seen.calls}`);
  });

  test('nginx hash on the session id', async t => {
    const url = await nginx(t, await limpetReplicas(t, 3), { upstream: 'hash $http_mcp_session_id;',
      location: 'proxy_buffering off;' });
    is(await probe(url), 'broken', 'session-hash', 'session-hash');
  });

  test('by cookie: named, its value never told; healthy for clients with a jar (AFF-09)', async t => {
    const url = await haproxy(t, await limpetReplicas(t, 3), {
      backend: 'balance random(1)\n  cookie lb_affinity insert indirect nocache',
      server: i => `cookie secret-value-${i}` });
    const seen = await probe(url);
    is(seen, 'broken', 'cookie', 'cookie');
    assert.deepEqual(seen.cookie, { offered: ['lb_affinity'], name: 'lb_affinity' });
    assert.match(seen.fix, /--cookie-jar/);
    assert.ok(!JSON.stringify(seen).includes('secret-value'));
    assert.equal(seen.arms.cookie.lost, 0);
    const page = await limpet([url]);
    assert.match(page.stdout, /The cookie is lb_affinity\./);
    assert.ok(!page.stdout.includes('secret-value'));
    const jar = await probe(url, '--cookie-jar');
    is(jar, 'healthy', 'jar', 'cookie');
  });

  test('of several cookies the one that pins is named', async t => {
    const url = await haproxy(t, await limpetReplicas(t, 3), {
      frontend: 'http-response add-header Set-Cookie "theme=dark; Path=/"',
      backend: 'balance random(1)\n  cookie pin insert indirect nocache',
      server: i => `cookie v${i}` });
    const seen = await probe(url);
    is(seen, 'broken', 'cookie', 'cookie');
    assert.deepEqual(seen.cookie.offered.sort(), ['pin', 'theme']);
    assert.equal(seen.cookie.name, 'pin');
  });

  test('by connection only, DELETE told apart (AFF-03)', async t => {
    const url = await haproxy(t, await limpetReplicas(t, 3),
      { mode: 'tcp', backend: 'balance random(1)' });
    const seen = await probe(url);
    is(seen, 'broken', 'connection', 'connection');
    assert.equal(seen.arms.kept.lost, 0);
    assert.ok(seen.arms.kept.ok >= 50);
    assert.ok(seen.delete.lost > 5, JSON.stringify(seen.delete));
  });

  test('by source address', async t => {
    const url = await haproxy(t, await limpetReplicas(t, 3),
      { backend: 'balance source\n  hash-type consistent' });
    const seen = await probe(url);
    is(seen, 'broken', 'address', 'address');
    assert.equal(seen.arms.fresh.lost, 0);
    assert.ok(seen.arms.elsewhere.lost > 20);
  });

  test('by the session id: HAProxy that learns it, and the gateway', async t => {
    const replicas = await limpetReplicas(t, 3);
    const learnt = await probe(await haproxy(t, replicas, { backend: STICK }));
    is(learnt, 'healthy', 'header', 'header');
    assert.equal(learnt.row, 'O'.repeat(20));
    assert.equal(learnt.fix, null);
    const front = await gateway(t, { replicas: replicas.map(at => `http://${at}/mcp`) });
    const seen = await probe(front.url);
    is(seen, 'healthy', 'header', 'header');
    assert.equal(seen.unknown_id_status, 404);
    assert.equal(seen.sessions_left, 0);
  });

  test('one process', async t => {
    const [at] = await limpetReplicas(t, 1);
    const seen = await probe(`http://${at}/mcp`);
    is(seen, 'healthy', 'one-process', 'not-needed');
    assert.deepEqual(seen.replicas, { estimate: 1, low: 1, high: null });
    assert.deepEqual(seen.answers.map(row => row.right), [true, true, true, true, true]);
  });
});

test("the demo's round robin is broken, its gateway healthy", async t => {
  let demo;
  t.after(() => demo?.stop('SIGINT', 10_000));
  demo = start(t, 'limpet demo', LIMPET, ['demo']);
  const [, front, robin] = await demo.says(/Gateway (\S+) {3}round robin (\S+)/, 20_000);
  const seen = await probe(robin);
  is(seen, 'broken', 'rotation', 'none');
  assert.equal(seen.replicas.estimate, 3);
  is(await probe(front), 'healthy', 'header', 'header');
});

suite('servers without sessions', () => {
  test('a stateless one', async t => {
    const url = await haproxy(t, await limpetReplicas(t, 3, ['--session', 'stateless']),
      { backend: 'balance roundrobin' });
    is(await probe(url), 'healthy', 'stateless', 'not-needed');
  });

  test('a modern one', async t => {
    const [replica] = await modernOnly(t, 1);
    const seen = await probe(replica.url);
    is(seen, 'healthy', 'stateless', 'not-needed');
    assert.match(seen.revisions_without_sessions, /2026-07-28/);
  });
});

suite('calls in two steps (MOD-04)', () => {
  const front = async (t, env) => haproxy(t,
    (await modernOnly(t, 3, env)).map(r => `127.0.0.1:${r.port}`), { backend: 'balance random(1)' });

  test('each replica has a key of its own: about a third of the second steps is taken', async t => {
    const url = await front(t);
    const seen = await probe(url, '--two-step', 'confirm');
    is(seen, 'broken', 'state-not-shared', 'not-needed');
    const { begun, fine, lost } = seen.two_step;
    assert.equal(begun, 30);
    assert.equal(fine + lost, 30);
    assert.ok(fine >= 1 && fine <= 22, `${fine} of 30`);
    assert.match(seen.fix, /seal request states with a key that all replicas have/);
    const page = await limpet(['--two-step', 'confirm {}', url]);
    assert.match(page.stdout, /BROKEN: continuation state not shared between replicas/);
    assert.match(page.stdout, /two-step calls +\d+ of 30 second steps were taken \(\d+ %\)/);
  });

  test('all have the same key; nothing is called unless it is named', async t => {
    const url = await front(t, { STATE_KEY: 'k'.repeat(32) });
    const seen = await probe(url, '--two-step', 'confirm');
    is(seen, 'healthy', 'stateless', 'not-needed');
    assert.deepEqual(seen.two_step, { begun: 30, fine: 30, lost: 0, faults: 0, words: null });
    assert.equal((await probe(url)).two_step, null);
    assert.equal((await probe(url, '--two-step', 'whoami')).two_step.words,
      'the tool asked for no input');
  });

  test('what is no tool and no object', async () => {
    for (const words of ['', ' {}', 'x [1]', 'x {', 'é']) {
      const { code, stderr } = await limpet(['--two-step', words, 'http://127.0.0.1:1/mcp']);
      assert.equal(code, 64);
      assert.match(stderr, /--two-step takes a tool's name/);
    }
  });
});

suite('methods', () => {
  test('GET and DELETE go elsewhere', async t => {
    const replicas = await limpetReplicas(t, 3);
    // One replica only: a rotation could fall in step with that of the sessions.
    const more = `backend other\n  server o ${replicas[0]}`;
    const get = await haproxy(t, replicas, { backend: STICK,
      frontend: 'use_backend other if METH_GET', more });
    is(await probe(get), 'broken', 'get-elsewhere', 'header');
    const del = await haproxy(t, replicas, { backend: STICK,
      frontend: 'use_backend other if { method DELETE }', more });
    const seen = await probe(del);
    is(seen, 'broken', 'delete-elsewhere', 'header');
    assert.ok(seen.delete.lost > 0);
  });

  test('DELETE that is accepted and does nothing', async t => {
    const replicas = await limpetReplicas(t, 2);
    const url = await haproxy(t, replicas, { backend: STICK,
      frontend: 'http-request return status 200 if { method DELETE }' });
    is(await probe(url), 'broken', 'delete-elsewhere', 'header');
  });

  test('GET that is neither a stream nor 405', async t => {
    const replicas = await limpetReplicas(t, 2);
    const empty = await haproxy(t, replicas, { backend: STICK, frontend:
      'http-request return status 200 content-type text/event-stream string ": bye" if METH_GET' });
    is(await probe(empty), 'broken', 'get-storm', 'header');
    const page = await haproxy(t, replicas, { backend: STICK, frontend:
      'http-request return status 200 content-type text/html string "<p>hi" if METH_GET' });
    is(await probe(page), 'broken', 'get-storm', 'header');
  });
});

suite('unknown ids', () => {
  for (const status of [400, 401, 409, 422, 500, 503]) {
    test(`${status} in place of 404`, async t => {
      const [at] = await limpetReplicas(t, 1);
      const url = await haproxy(t, [at],
        { frontend: `http-response set-status ${status} if { status 404 }` });
      const seen = await probe(url);
      is(seen, 'broken', 'unknown-status', 'not-needed');
      assert.equal(seen.unknown_id_status, status);
      assert.match(seen.fix, /-32001/);
      assert.equal(seen.answers.find(row => row.question === 'unknown-id').right, false);
    });
  }

  test('the reference server says 400', async t => {
    const [replica] = await everything(t, 1);
    const seen = await probe(replica.url);
    is(seen, 'broken', 'unknown-status', 'not-needed');
    assert.equal(seen.unknown_id_status, 400);
  });

  test('a web page, 200', async t => {
    const [at] = await limpetReplicas(t, 1);
    const url = await haproxy(t, [at], { frontend:
      'http-response return status 200 content-type text/html string "<html>" if { status 404 }' });
    const seen = await probe(url);
    is(seen, 'broken', 'unknown-status', 'not-needed');
    assert.equal(seen.unknown_id_status, 200);
  });
});

suite('on the way', () => {
  test('the id is lost from answers, as at a CDN', async t => {
    const [at] = await limpetReplicas(t, 1);
    const url = await haproxy(t, [at], { frontend: 'http-response del-header Mcp-Session-Id' });
    const seen = await probe(url);
    is(seen, 'broken', 'id-lost-outward', 'none');
    assert.match(seen.fix, /header/);
  });

  test('the id is lost from requests', async t => {
    const [at] = await limpetReplicas(t, 1);
    const url = await haproxy(t, [at], { frontend: 'http-request del-header Mcp-Session-Id' });
    is(await probe(url), 'broken', 'id-lost-inward', 'none');
  });

  test('CORS hides the id, or shows it', async t => {
    const [at] = await limpetReplicas(t, 1);
    const allow = 'http-request del-header Origin\n' +
      '  http-response set-header Access-Control-Allow-Origin *';
    const hidden = await probe(await haproxy(t, [at], { frontend: allow }));
    is(hidden, 'broken', 'cors-hides-id', 'not-needed');
    const shown = await probe(await haproxy(t, [at], { frontend:
      `${allow}\n  http-response set-header Access-Control-Expose-Headers Mcp-Session-Id` }));
    is(shown, 'healthy', 'one-process', 'not-needed');
  });

  test('streams are buffered by nginx (STR-01)', async t => {
    const [replica] = await everything(t, 1);
    const seen = await probe(await nginx(t, [`127.0.0.1:${replica.port}`],
      { location: 'proxy_ignore_headers X-Accel-Buffering;' }));
    is(seen, 'broken', 'buffered', 'not-needed');
    assert.match(seen.fix, /proxy_buffering off/);
    assert.equal(seen.fix_for, 'nginx');
    assert.ok(seen.hops.some(hop => /nginx/.test(hop)), 'nginx is named');
    assert.deepEqual([seen.get.fine, seen.stream.without_head], [0, 6]);
  });

  test('a front that gathers whole answers is told apart from no stream at all', async t => {
    const [at] = await limpetReplicas(t, 1);
    const url = await behind(t, `http://${at}/mcp`);
    const seen = await probe(url);
    is(seen, 'broken', 'buffered', 'not-needed');
    assert.ok(seen.stream.without_head > 2);
    const replica = await tiny(t, 'no stream');
    const none = await probe(replica.url);
    is(none, 'healthy', 'one-process', 'not-needed');
    assert.equal(none.get.not_offered, none.get.asked);
  });

  test('streams begin late behind HAProxy without http-no-delay', async t => {
    const [at] = await limpetReplicas(t, 1);
    const seen = await probe(await haproxy(t, [at], { backend: 'no option http-no-delay',
      frontend: 'no option http-no-delay' }));
    is(seen, 'healthy', 'one-process', 'not-needed');
    assert.ok(seen.findings.includes('slow-stream'), JSON.stringify(seen.stream));
  });

  test('a server is down behind a healthy balancer', async t => {
    const replicas = await limpetReplicas(t, 2);
    const dead = `127.0.0.1:${await freePort()}`;
    const seen = await probe(await haproxy(t, [...replicas, dead],
      { backend: `${STICK}\n  retries 0` }));
    is(seen, 'broken', 'server-down', 'header');
  });

  test('one 5xx in a hundred is no verdict', async t => {
    const url = await haproxy(t, await limpetReplicas(t, 3), { backend: STICK, frontend:
      'http-request return status 503 if { rand(100) eq 0 }' });
    let healthy = 0;
    for (let i = 0; i < RUNS; i++) {
      const seen = await probe(url);
      healthy += seen.verdict === 'healthy' && seen.affinity === 'header';
    }
    t.diagnostic(`healthy in ${healthy} of ${RUNS}`);
    assert.ok(healthy >= RUNS - Math.floor(RUNS / 200), `${healthy} of ${RUNS}`);
  });
});

suite('old SSE', () => {
  test('one server, a round robin, a balancer by address, a cookie', async t => {
    const servers = (await everythingSse(t, 3)).map(r => `127.0.0.1:${r.port}`);
    const sse = url => url.replace('/mcp', '/sse');
    const alone = await probe(`http://${servers[0]}/sse`);
    is(alone, 'healthy', 'one-process', 'not-needed');
    assert.ok(alone.is_old_sse);
    const flags = ['--sessions', '6', '--calls', '8'];
    const over = async options => probe(sse(await haproxy(t, servers, options)), ...flags);
    const [lost, cookie, address] = await Promise.all([ // each waits for answers that are lost
      over({ backend: 'balance roundrobin' }),
      over({ backend: 'balance roundrobin\n  cookie pin insert indirect nocache',
        server: i => `cookie v${i}` }),
      over({ backend: 'balance source\n  hash-type consistent' })]);
    is(lost, 'broken', 'random', 'none');
    is(cookie, 'broken', 'cookie', 'cookie');
    is(address, 'broken', 'address', 'address');
  });
});

suite('no endpoint', () => {
  test('nobody there', async () => {
    const seen = await probe(`http://127.0.0.1:${await freePort()}/mcp`);
    is(seen, 'unknown', 'unreachable', null);
    assert.match(seen.failure, /refused/);
  });

  test('a web page (AFF-12)', async t => {
    const url = await serve(t, (request, response) => response
      .writeHead(200, { 'content-type': 'text/html' }).end('<html>'.repeat(350)));
    const seen = await probe(url);
    is(seen, 'unknown', 'web-page', null);
    assert.equal(seen.calls, 0);
    const page = await limpet([url]);
    assert.equal(page.code, 3);
    assert.match(page.stdout, /this is a web page, not an MCP endpoint/);
    assert.ok(!page.stdout.includes('calls found'));
  });

  test('another service', async t => {
    const url = await serve(t, (request, response) => response
      .writeHead(404, { 'content-type': 'application/json' }).end('{"message":"no route"}'));
    is(await probe(url), 'unknown', 'no-endpoint', null);
  });

  test('a login is needed', async t => {
    const url = await serve(t, (request, response) => response.writeHead(401, {
      'www-authenticate': 'Bearer realm="tools"' }).end());
    const seen = await probe(url);
    is(seen, 'unknown', 'login', null);
    assert.match(seen.login, /realm/);
  });

  test('metadata of a login: the address in use, or another one (AUT-01, AUT-02)', async t => {
    let announced, resource;
    const url = await serve(t, (request, response) => {
      if (request.url === '/.well-known/oauth-protected-resource/mcp') {
        assert.equal(request.headers.authorization, undefined);
        response.writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ resource, authorization_servers: [] }));
      } else if (request.url.startsWith('/.well-known/')) {
        response.writeHead(404).end();
      } else {
        response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${announced}"` }).end();
      }
    });
    announced = new URL('/.well-known/oauth-protected-resource/mcp', url).href;
    resource = url;
    const right = await probe(url, '--bearer', 'wrong-token');
    is(right, 'unknown', 'login', null);
    assert.deepEqual(right.well_known, { 'oauth-protected-resource': 200,
      'oauth-authorization-server': 404, 'openid-configuration': 404 });
    resource = 'http://10.0.0.5:8000/mcp';
    const wrong = await limpet([url]);
    assert.equal(wrong.code, 1);
    for (const value of [url, resource]) assert.ok(wrong.stdout.includes(value), wrong.stdout);
    resource = url;
    announced = 'http://10.0.0.5:8000/.well-known/oauth-protected-resource/mcp';
    const inner = await probe(url);
    is(inner, 'broken', 'login-mismatch', null);
    assert.equal(inner.metadata_url, announced);
  });

  test('refused', async t => {
    const [at] = await limpetReplicas(t, 1);
    const seen = await probe(await haproxy(t, [at],
      { frontend: 'http-request set-header Host other.example' }));
    is(seen, 'unknown', 'refused', null);
    assert.match(seen.failure, /Host header/);
  });

  test('only errors', async t => {
    const url = await serve(t, (request, response) => response.writeHead(502).end());
    is(await probe(url), 'unknown', 'trouble', null);
  });
});

test('the table of answers: 409, DELETE without Allow (STA-13)', async t => {
  const [at] = await limpetReplicas(t, 1);
  const url = await haproxy(t, [at], { frontend: `http-request return status 405 if { method DELETE }
  http-request return status 405 hdr Allow POST if METH_GET
  http-response set-status 409 if { status 400 } or { status 404 }` });
  const seen = await probe(url);
  is(seen, 'broken', 'unknown-status', 'not-needed');
  const right = Object.fromEntries(seen.answers.map(row => [row.question, row.right]));
  assert.deepEqual(right,
    { 'missing-id': false, 'unknown-id': false, 'ended-id': null, delete: false, get: true });
  const page = await limpet([url]);
  assert.equal(page.stdout.match(/ wrong$/gm).length, 3);
});

// A server whose sessions end when they were idle for `limit` ms, and whose streams say nothing.
function forgetful(t, limit) {
  const used = new Map();
  return serve(t, (request, response, body) => {
    const json = body ? JSON.parse(body) : {};
    const id = request.headers['mcp-session-id'];
    const fields = { 'content-type': 'application/json' };
    const result = JSON.stringify({ jsonrpc: '2.0', id: json.id,
      result: { protocolVersion: '2025-11-25' } });
    if (json.method === 'initialize') {
      used.set(String(used.size), Date.now());
      return response.writeHead(200, { ...fields, 'mcp-session-id': String(used.size - 1) })
        .end(result);
    }
    const isKnown = Date.now() - used.get(id) < limit;
    if (!isKnown) return response.writeHead(id === undefined ? 400 : 404).end();
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      return undefined;
    }
    used.set(id, request.method === 'DELETE' ? 0 : Date.now());
    return json.id === undefined ? response.writeHead(202).end()
      : response.writeHead(200, fields).end(result);
  });
}

test('after a rest: the session is forgotten, the quiet stream cut (STA-10, STR-04)', async t => {
  const server = new URL(await forgetful(t, 2500));
  const url = await haproxy(t, [server.host], { backend: 'timeout server 4s' });
  const { code, stdout, stderr } = await limpet(['--json', '--rest', '8', url]);
  const seen = JSON.parse(stdout);
  assert.equal(code, 1);
  assert.match(stderr, /this takes 18 seconds/);
  is(seen, 'broken', 'idle-loss', 'not-needed');
  assert.ok(seen.findings.includes('idle-cut'));
  assert.equal(seen.rest.session_alive_s, 2);
  assert.equal(seen.rest.session_lost_s, 3);
  assert.equal(seen.rest.streams_cut_ms.length, 3);
  for (const ms of seen.rest.streams_cut_ms) assert.ok(ms > 3500 && ms < 4800, `${ms} ms`);
  assert.equal(seen.arms.fresh.lost, 0);
});

suite('the command', () => {
  test('the page is 80 columns wide and says what to do', async t => {
    const url = await haproxy(t, await limpetReplicas(t, 2), { backend: 'balance roundrobin' });
    const { code, stdout, stderr } = await limpet([url]);
    assert.equal(code, 1);
    assert.equal(stderr, '');
    assert.match(stdout, /BROKEN: no affinity/);
    assert.match(stdout, /found their session \(\d+ %\), 20 sessions/);
    assert.match(stdout, /none was offered/);
    assert.match(stdout, /limpet gateway http/);
    const long = stdout.split('\n').filter(line => line.length > 80 && !line.startsWith('      '));
    assert.deepEqual(long, []);
  });

  test('wrong usage', async () => {
    for (const [args, message] of [[[], /name the server's URL/], [['a', 'b'], /a word too many/],
      [['--calls', '0', 'http://127.0.0.1/'], /--calls/], [['--nope'], /no flag --nope/]]) {
      const { code, stderr } = await limpet(args);
      assert.equal(code, 64, stderr);
      assert.match(stderr, message);
    }
    const help = await limpet(['--help']);
    assert.match(help.stdout, /Example:/);
    assert.ok(help.stdout.split('\n').every(line => line.length <= 80));
  });

  test('a server that is silent, drips or never ends is no closed port', async t => {
    const silent = await raw(t, () => {});
    const drips = await raw(t, socket => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n');
      const timer = setInterval(() => socket.write(' '), 300);
      socket.on('close', () => clearInterval(timer));
    });
    const endless = await raw(t, socket => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n');
      const more = () => { while (!socket.destroyed && socket.write(Buffer.alloc(65536, 32))); };
      socket.on('drain', more);
      more();
    });
    const words = [/connected, but no answer within 3.5 s/, /no answer within/, /does not end/];
    const waiting = await Promise.all([probe(silent), probe(drips)]); // both only wait
    for (const [i, seen] of [...waiting, await probe(endless)].entries()) {
      is(seen, 'unknown', 'no-answer', null);
      assert.match(seen.failure, words[i]);
    }
  });

  test('a web server that knows no POST is no endpoint; advice without a front names none', async t => {
    const url = await serve(t, (request, response) => response
      .writeHead(501, { 'content-type': 'text/html' }).end('<h1>\nUnsupported</h1>\n'));
    is(await probe(url), 'unknown', 'web-page', null);
    const { code, stdout } = await limpet([url]);
    assert.equal(code, 3);
    assert.match(stdout, /\n\n  Fix: give the URL/);
    assert.match(stdout, /<h1> Unsupported/);
    assert.doesNotMatch(stdout, /\n\n\n/);
    const closed = await limpet([`http://127.0.0.1:${await freePort()}/mcp`]);
    assert.match(closed.stdout, /Fix: start the server/);
  });

  test('behind TLS: refused, believed with --cacert', async t => {
    const [at] = await limpetReplicas(t, 1);
    const authority = new Authority(t);
    const front = await tlsFront(t, authority.issue('IP:127.0.0.1'), at.split(':')[1]);
    const refused = await probe(front.url);
    is(refused, 'unknown', 'unreachable', null);
    assert.match(refused.failure, /certificate/);
    assert.match(refused.fix, /--cacert/);
    is(await probe(front.url, '--cacert', authority.file), 'healthy', 'one-process', 'not-needed');
  });

  test('what goes on is shown on a terminal, and wiped', async t => {
    const url = await behind(t, (await tiny(t, 'slow')).url, 60);
    const { code, stdout } = await run('script', ['-qec', `${LIMPET} probe ${url}`, '/dev/null'],
      { within: 30_000 });
    assert.equal(code, 0, stdout);
    assert.match(stdout, /\r\x1b\[K[a-z, ]+: \d+ of \d+/);
    assert.match(stdout, /\r\x1b\[Klimpet probe/);
  });

  test('Ctrl-C ends it with what there is, and nothing is left behind', async t => {
    const replica = await tiny(t, 'slow');
    const url = await behind(t, replica.url, 60);
    const proc = start(t, 'limpet probe', LIMPET, ['probe', '--json', url]);
    while (replica.initializes < 3) await new Promise(resolve => setTimeout(resolve, 10));
    const { code } = await proc.stop('SIGINT', 5000);
    assert.equal(code, 0, proc.log);
    assert.equal(JSON.parse(proc.stdout).is_cut_short, true);
    assert.equal(replica.sessions.size, 0);
  });

  test('the network log holds no secret', async t => {
    const file = path.join(folder(t), 'net.log');
    const [at] = await limpetReplicas(t, 2);
    const url = await haproxy(t, [at], { backend: 'cookie pin insert', server: () => 'cookie topsecret' });
    await probe(url, '--log-file', file, '--bearer', 'token-1234', '--sessions', '2', '--calls', '3');
    const text = readFileSync(file, 'utf8');
    assert.match(text, /> POST http/);
    for (const secret of ['topsecret', 'token-1234']) assert.ok(!text.includes(secret), secret);
    assert.ok(!/mcp-session-id: [^#]/i.test(text));
  });

  test('a slow server is probed in time', async t => {
    const replica = await tiny(t, 'slow');
    const url = await behind(t, replica.url, 150);
    const seen = await probe(url);
    is(seen, 'healthy', 'one-process', 'not-needed');
    assert.ok(seen.took_ms < MOST_MS, `${seen.took_ms} ms`);
    assert.equal(replica.sessions.size, seen.sessions_left);
  });
});
