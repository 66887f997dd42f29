// The client commands in front of a person: on a terminal, and ended by a signal.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { suite, test } from 'node:test';
import { LIMPET, run } from './lib/proc.mjs';
import { tiny } from './lib/tiny.mjs';

// A server that takes its time with everything but the first few answers, which are immediate.
async function dragging(t, quick) {
  const replica = await tiny(t);
  let count = 0;
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const wait = ++count > quick ? 400 : 0;
    await new Promise(resolve => setTimeout(resolve, wait));
    const { host, connection, ...headers } = request.headers;
    const answer = await fetch(replica.url, { method: request.method, headers,
      body: chunks.length ? Buffer.concat(chunks) : undefined });
    const fields = Object.fromEntries([...answer.headers].filter(([name]) =>
      /^(mcp-|content-type$|allow$)/.test(name)));
    response.writeHead(answer.status, fields).end(await answer.text());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => { server.closeAllConnections(); server.close(); });
  return { replica, url: `http://127.0.0.1:${server.address().port}/mcp` };
}

// On a terminal of its own; what is typed comes from `input`.
async function onTerminal(args, input = '') {
  const words = [LIMPET, ...args].map(word => `'${word}'`).join(' ');
  const child = spawn('script', ['-qec', words, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', text => { screen += text; });
  child.stdin.write(input);
  const timer = setTimeout(() => child.kill('SIGKILL'), 30_000);
  const [code] = await once(child, 'close');
  clearTimeout(timer);
  return { code, screen };
}

suite('probe', () => {
  test('its progress is shown on a terminal, and wiped away', async t => {
    const { url } = await dragging(t, 30);
    const { code, screen } = await onTerminal(['probe', '--sessions', '3', '--calls', '4', url]);
    assert.equal(code, 0, screen);
    assert.match(screen, /\r\x1b\[K[^\n]+: \d+ of \d+/);
    assert.match(screen, /\r\x1b\[K\r?\n?[^\x1b]*HEALTHY/i);
  });

  test('the first SIGINT: what is known so far is told, and no session stays', async t => {
    const { replica, url } = await dragging(t, 40);
    const child = spawn(LIMPET, ['probe', '--json', url]);
    let stdout = '';
    child.stdout.on('data', text => { stdout += text; });
    await new Promise(resolve => setTimeout(resolve, 1500));
    child.kill('SIGINT');
    const [code] = await once(child, 'close');
    const seen = JSON.parse(stdout);
    assert.equal(seen.is_cut_short, true);
    assert.equal(code, { healthy: 0, broken: 1, unknown: 2 }[seen.verdict], stdout);
    assert.equal(replica.sessions.size, seen.sessions_left);
  });

  test('from addresses that are named', async t => {
    const { url } = await tiny(t);
    const result = await run(LIMPET, ['probe', '--json', '--source', '127.0.0.9', '--source',
      '127.0.0.10', '--sessions', '3', '--calls', '3', url], { within: 20_000 });
    assert.equal(result.code, 0, result.stdout + result.stderr);
    assert.equal(JSON.parse(result.stdout).arms.elsewhere.faults, 0);
  });
});

suite('inspect -i on a terminal', () => {
  test('a prompt, and an answer that is typed', async t => {
    const { url } = await tiny(t);
    const { code, screen } = await onTerminal(['inspect', '-i', url], 'ping\nquit\n');
    assert.equal(code, 0, screen);
    assert.match(screen, /> /);
    assert.match(screen, /^\{\}\r?$/m);
  });
});
