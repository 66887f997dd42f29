// The flags that the client commands share, and mcp.json, through `limpet connect`: what reaches the
// server, and a sentence with status 64 for each mistake.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import http from 'node:http';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite, test } from 'node:test';
import { folder } from './lib/gateway.mjs';
import { LIMPET, run } from './lib/proc.mjs';

const INITIALIZE = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {
  protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'hand', version: '1' } } });

// A server that keeps what it was asked and is legacy only.
async function listener(t) {
  const asked = [];
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', text => { body += text; }).on('end', () => {
      asked.push({ method: request.method, url: request.url, headers: request.headers, body });
      const message = body && JSON.parse(body);
      if (message?.method !== 'initialize') {
        response.writeHead(message?.id === undefined ? 202 : 400).end();
        return;
      }
      response.writeHead(200, { 'content-type': 'application/json',
        'mcp-session-id': 'the-secret-id', 'set-cookie': 'lb=the-secret-pod' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: {
        protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } } }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => { server.closeAllConnections(); server.close(); });
  return { asked, url: `http://127.0.0.1:${server.address().port}/mcp?key=the-secret-query` };
}

async function connect(args, { env, cwd } = {}) {
  const child = spawn(LIMPET, ['connect', ...args],
    { env: { ...process.env, LIMPET_BEARER: '', ...env }, cwd });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', text => { stdout += text; });
  child.stderr.on('data', text => { stderr += text; });
  child.stdin.on('error', () => {});
  child.stdin.end(INITIALIZE + '\n');
  const timer = setTimeout(() => child.kill('SIGKILL'), 10000);
  const [code] = await once(child, 'close');
  clearTimeout(timer);
  return { code, stdout, stderr };
}

suite('what reaches the server', () => {
  test('headers, a token, and no cookies unless asked for', async t => {
    const { asked, url } = await listener(t);
    const { code, stdout } = await connect(['--header', 'X-One: 1', '--header=X-Two: a:b',
      '--bearer', 'abc', '--no-notification-stream', url]);
    assert.equal(code, 0);
    assert.equal(JSON.parse(stdout).result.serverInfo.name, 's');
    const methods = asked.map(a => a.method);
    assert.ok(!methods.includes('GET'), 'no notification stream');
    assert.equal(methods.at(-1), 'DELETE');
    for (const { headers } of asked) {
      assert.equal(headers['x-one'], '1');
      assert.equal(headers['x-two'], 'a:b');
      assert.equal(headers.authorization, 'Bearer abc');
      assert.equal(headers.cookie, undefined);
    }
  });

  test('with --cookie-jar everything after the first answer carries the cookie', async t => {
    const { asked, url } = await listener(t);
    await connect(['--cookie-jar', '--era', 'legacy', url]);
    const [first, ...rest] = asked;
    assert.equal(first.headers.cookie, undefined);
    assert.ok(rest.some(a => a.method === 'GET') && rest.some(a => a.method === 'DELETE'));
    for (const { headers } of rest) assert.equal(headers.cookie, 'lb=the-secret-pod');
  });

  test('the token from a file, the environment and mcp.json: flags first, then the file', async t => {
    const { asked, url } = await listener(t);
    const dir = folder(t);
    writeFileSync(path.join(dir, 'token'), 'from-file\n', { mode: 0o600 });
    writeFileSync(path.join(dir, 'mcp.json'), JSON.stringify({ mcpServers: {
      plain: { url }, own: { url, headers: { Authorization: 'Bearer ${TOKEN}' } },
      jar: { type: 'streamable-http', url, cookieJar: true } } }));
    const token = async (args, env) => {
      asked.length = 0;
      const { code, stderr } = await connect(args, { cwd: dir, env });
      assert.equal(code, 0, stderr);
      return asked[0].headers.authorization;
    };
    assert.equal(await token(['--bearer', '@token', 'plain']), 'Bearer from-file');
    assert.equal(await token(['plain'], { LIMPET_BEARER: 'from-env' }), 'Bearer from-env');
    assert.equal(await token(['plain']), undefined);
    const env = { LIMPET_BEARER: 'from-env', TOKEN: 'own' };
    assert.equal(await token(['own'], env), 'Bearer own');
    assert.equal(await token(['--bearer', 'flag', 'own'], env), 'Bearer flag');
    await token(['--era', 'legacy', 'jar']);
    assert.equal(asked.at(-1).headers.cookie, 'lb=the-secret-pod');
  });

  test('the network log is for its owner only and holds no secret', async t => {
    const { url } = await listener(t);
    const log = path.join(folder(t), 'log');
    await connect(['--cookie-jar', '--bearer', 'the-secret-token', '--log-file', log, url]);
    const text = readFileSync(log, 'utf8');
    assert.equal(statSync(log).mode & 0o777, 0o600);
    assert.match(text, /> POST http:.*\n/);
    assert.match(text, /> cookie: lb=#[0-9a-f]{8}\n/i);
    assert.match(text, /< set-cookie: lb=#[0-9a-f]{8}/i);
    assert.doesNotMatch(text, /the-secret/);
  });
});

suite('mistakes', () => {
  const dir = t => {
    const at = folder(t);
    writeFileSync(path.join(at, 'mcp.json'), JSON.stringify({ mcpServers: {
      here: { url: 'http://127.0.0.1:1/mcp' }, local: { command: 'x' }, odd: { url: 'ftp://x/' } } }));
    writeFileSync(path.join(at, 'bad.json'), '{"mcpServers": ');
    writeFileSync(path.join(at, 'no.pem'), 'nothing');
    return at;
  };
  for (const [args, pattern] of [
    [[], /say which server/],
    [['a://b', 'c://d'], /say which server/],
    [['http://'], /no address of a server/],
    [['http://user:word@127.0.0.1/mcp'], /"http:\/\/\*\*\*@127\.0\.0\.1\/mcp".*without a user name/],
    [['ftp://127.0.0.1/mcp'], /neither http nor https/],
    [['nobody'], /nobody.*here, local, odd|here/],
    [['local'], /stdio server/],
    [['odd'], /http/],
    [['--config', 'bad.json', 'here'], /bad\.json/],
    [['--config', 'none.json', 'here'], /none\.json/],
    [['--header', 'no colon', 'here'], /'Name: value'/],
    [['--header', 'Host: x', 'here'], /"Host" cannot be sent/],
    [['--header', 'Mcp-Session-Id: x', 'here'], /"Mcp-Session-Id" cannot be sent/],
    [['--bearer', 'two words', 'here'], /no token/],
    [['--bearer', '@none', 'here'], /none/],
    [['--bearer'], /needs a value/],
    [['--transport', 'carrier-pigeon', 'here'], /say streamable-http or sse/],
    [['--era', 'bronze', 'here'], /say auto, legacy or modern/],
    [['--timeout', '0', 'here'], /no whole number/],
    [['--cookie-jar=yes', 'here'], /takes no value/],
    [['--cacert', 'no.pem', 'https://127.0.0.1:1/mcp'], /no\.pem/],
    [['--log-file', '/nowhere/x', 'here'], /cannot be written/],
    [['--what', 'here'], /no flag --what/],
  ]) {
    test(args.join(' ') || 'nothing at all', async t => {
      const { code, stdout, stderr } = await run(LIMPET, ['connect', ...args], { cwd: dir(t) });
      assert.equal(code, 64, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, pattern);
      assert.equal(stderr.trim().split('\n').length, 1, stderr);
    });
  }

  test('without an mcp.json a name is explained', async t => {
    const { code, stderr } = await run(LIMPET, ['connect', 'tools'], { cwd: folder(t) });
    assert.equal(code, 64);
    assert.match(stderr, /no URL, and there is no mcp\.json here/);
  });
});
