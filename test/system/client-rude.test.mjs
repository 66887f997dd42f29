// Rough use of `limpet inspect` and `limpet connect`: closed and full outputs, readers that are slow
// or leave, huge answers, a thousand requests at once, odd bytes in both directions.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { suite, test } from 'node:test';
import { byHand, INITIALIZE } from './lib/bridge.mjs';
import { until } from './lib/flow.mjs';
import { inspect } from './lib/inspect.mjs';
import { played } from './lib/played.mjs';
import { LIMPET, sleep } from './lib/proc.mjs';

const FLAGS = ['--era', 'legacy', '--no-notification-stream'];
const MIB = 1 << 20;
const PATIENT = { within: 90_000 }; // instrumented builds take their time with so many bytes

// tools/call answers `n` times "x", after `ms`, as an event when `sse` is there.
const sized = t => played(t, async (method, message, { response }) => {
  if (method !== 'tools/call') return message?.id === undefined ? undefined : {};
  const { n = 1, ms = 0, sse } = message.params.arguments;
  if (ms) await sleep(ms);
  const value = { content: [{ type: 'text', text: 'x'.repeat(n) }] };
  if (!sse) return value;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const answer = JSON.stringify({ jsonrpc: '2.0', id: message.id, result: value });
  return void response.end(`data: ${answer}\n\n`);
});

// A line of the shell, with L for the command and U for the server.
const shell = (line, url) => new Promise(resolve => {
  execFile('/bin/bash', ['-c', line], { timeout: PATIENT.within, maxBuffer: 1 << 30,
    env: { ...process.env, L: LIMPET, U: url, F: FLAGS.join(' ') } },
  (error, stdout, stderr) => resolve({ code: error ? error.code : 0, stdout, stderr }));
});

suite('inputs and outputs', () => {
  const OPEN = JSON.stringify(INITIALIZE);
  const HELD = `(exec 2>&-; echo '${OPEN}'; exec sleep 30)`; // an input that does not end
  // The leak sanitizer wants files of its own at the end.
  const FEW = 'export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"; ulimit -n 6;';

  for (const [what, line, code, pattern] of [
    ['inspect into a full disk', '$L inspect $F $U call x >/dev/full', 1,
      /^limpet: the output could not be written$/m],
    ['inspect --json into a full disk',
      '$L inspect --json $F $U call x >/dev/full', 1, /could not be written/],
    ['help into a full disk', '$L inspect --help >/dev/full', 1, /could not be written/],
    ['a reader who leaves early gets no complaint',
      '$L inspect $F $U call x \'{"n":9000000}\' | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}', 1, /^$/],
    ['demo into a full disk', '$L demo >/dev/full', 1, /could not be written/],
    ['demo whose reader leaves', '$L demo | head -1 >/dev/null; exit ${PIPESTATUS[0]}', 1, /^$/],
    ['inspect with too few files', `${FEW} $L inspect $F $U`, 1, /or of open files \(ulimit/],
    ['replica with too few files', `${FEW} $L replica`, 1, /or of open files \(ulimit -n\)/],
    ['gateway with a log that cannot be', '$L gateway --log-file /nowhere/x $U', 2, /log file/],
    ['sidecar without the key of its peers',
      '$L sidecar --self a --peer b=http://127.0.0.1:1 --local $U --key-file /nowhere/k', 2,
      /there is no key file/],
    ['inspect -i without an input', '$L inspect -i $F $U <&-', 0, /connected/],
    ['inspect without any descriptor', '$L inspect $F $U call x <&- >&- 2>&-', 1, /^$/],
    ['inspect with a closed output', '$L inspect $F $U call x >&-', 1,
      /^limpet: the output could not be written$/m],
    ['probe with a closed output', '$L probe --sessions 1 --calls 1 $F $U >&-', 2,
      /^limpet: the output could not be written$/m],
    ['inspect with a closed error output', '$L inspect $F $U call x 2>&-', 0, /^$/],
    ['connect into a full disk', `$L connect $F $U < <${HELD} >/dev/full`, 1,
      /the standard input or output has failed: it is closed, or no stream, or its disk is full/],
    ['connect with a closed output', `$L connect $F $U < <${HELD} >&-`, 1,
      /the standard input or output has failed/],
    ['connect with a folder as its input', '$L connect $F $U </', 1,
      /the standard input or output has failed/],
    ['connect without an input', '$L connect $F $U <&-', 0, /^$/],
    ['connect with an empty input', '$L connect $F $U </dev/null', 0, /^$/],
    ['connect without an error output',
      `echo '${OPEN}' | $L connect $F $U 2>&- | grep -c '"id":"open"'`, 0, /^$/],
    ['an input that ends without a line end',
      `printf '%s' '${OPEN}' | $L connect $F $U | grep -c serverInfo`, 0, /^$/],
  ]) {
    test(what, async t => {
      const { url, seen } = await sized(t);
      const outcome = await shell(line, url);
      assert.equal(outcome.code, code, outcome.stderr);
      assert.match(outcome.stderr, pattern);
      if (what.includes('empty input')) assert.equal(seen.length, 0, 'nobody was asked');
    });
  }

  test('lists at 80 columns and in a file are the same; nothing obeys', async t => {
    const name = 'a\x1b[2J\x9b31m\u009b31m\u202eb\x07';
    const server = await played(t, method => (method === 'tools/list'
      ? { tools: [{ name, description: `${'long '.repeat(60)}\nsecond line` }] } : undefined));
    const narrow = await inspect([...FLAGS, server.url, 'tools'], { env: { COLUMNS: '80' } });
    const wide = await inspect([...FLAGS, server.url, 'tools']);
    assert.equal(narrow.stdout, wide.stdout);
    assert.equal(narrow.stdout.split('\n').length, 2, 'a line for each tool');
    assert.ok(!/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]/.test(narrow.stdout), JSON.stringify(narrow.stdout));
    assert.match(narrow.stdout, /^a\?\[2J/);
    const asJson = await inspect(['--json', ...FLAGS, server.url, 'tools']);
    assert.equal(asJson.json.tools[0].name, name, 'as it came');
  });

  test('what a server says to a host\'s user does not reach the terminal as it is', async t => {
    const server = await played(t, (method, message, { response }) =>
      void (method === 'initialize' && response.writeHead(500).end('\x1b]0;owned\x07\u009b31m')));
    const bridge = byHand(t, server.url, FLAGS);
    await bridge.open();
    assert.match(bridge.said, /HTTP 500/);
    assert.ok(!/[\x1b\x07\x9b]/.test(bridge.said), JSON.stringify(bridge.said));
  });
});

suite('much', () => {
  for (const sse of [false, true]) {
    test(`an answer of 50 MiB${sse ? ' in one event' : ''}`, async t => {
      const { url } = await sized(t);
      const args = { n: 50 * MIB, ...(sse && { sse }) };
      const outcome = await inspect([...FLAGS, url, 'call', 'x', JSON.stringify(args)], PATIENT);
      assert.equal(outcome.code, 0, outcome.stderr);
      assert.equal(outcome.stdout.length, 50 * MIB + 1);
      const bridge = byHand(t, url, FLAGS);
      await bridge.open();
      assert.equal((await bridge.tool('x', args, PATIENT.within)).result.content[0].text.length, 50 * MIB);
    });

    test(`one of 70 MiB${sse ? ' in one event' : ''} is told with its limit, and all goes on`, async t => {
      const { url } = await sized(t);
      const args = { n: 70 * MIB, ...(sse && { sse }) };
      const words = /a message of more than 64 MiB, the most that is taken here/;
      const outcome = await inspect([...FLAGS, url, 'call', 'x', JSON.stringify(args)], PATIENT);
      assert.equal(outcome.code, 1);
      assert.match(outcome.stderr, words);
      const bridge = byHand(t, url, FLAGS);
      await bridge.open();
      assert.match((await bridge.tool('x', args, PATIENT.within)).error.message, words);
      assert.ok((await bridge.tool('x')).result);
    });
  }

  test('a thousand requests at once, each answered once', async t => {
    const { url } = await sized(t);
    const bridge = byHand(t, url, FLAGS);
    await bridge.open();
    const count = 1000;
    for (let id = 1; id <= count; id++) {
      bridge.send({ jsonrpc: '2.0', id, method: 'tools/call',
        params: { name: 'x', arguments: { ms: 300 } } });
    }
    await until(() => bridge.lines.length === count + 1, PATIENT.within, 'all answers');
    const answers = bridge.lines.slice(1).map(line => JSON.parse(line));
    assert.equal(new Set(answers.map(answer => answer.id)).size, count);
    assert.ok(answers.every(answer => answer.result));
    assert.equal(await bridge.close(), 0);
  });

  test('more than 1,024 at once: the rest is refused in words', async t => {
    const { url } = await sized(t);
    const bridge = byHand(t, url, FLAGS);
    await bridge.open();
    for (let id = 1; id <= 1100; id++) {
      bridge.send({ jsonrpc: '2.0', id, method: 'tools/call',
        params: { name: 'x', arguments: { ms: 1500 } } });
    }
    await until(() => bridge.lines.length === 1101, PATIENT.within, 'all answers');
    const errors = bridge.lines.map(line => JSON.parse(line)).filter(m => m.error);
    assert.ok(errors.length > 0 && errors.length <= 1100 - 1024, `${errors.length}`);
    assert.match(errors[0].error.message, /too many requests at once/);
  });

  test('a host that reads nothing for a while loses nothing', async t => {
    const { url } = await sized(t);
    const bridge = byHand(t, url, FLAGS);
    await bridge.open();
    bridge.child.stdout.pause();
    const answers = Array.from({ length: 4 }, () => bridge.tool('x', { n: 15 * MIB }, PATIENT.within));
    await sleep(1500);
    bridge.child.stdout.resume();
    for (const { result } of await Promise.all(answers)) {
      assert.equal(result.content[0].text.length, 15 * MIB);
    }
    assert.equal(await bridge.close(), 0);
  });

  test('a host that never reads is given up at 128 MiB, which is said', async t => {
    const { url } = await sized(t);
    const bridge = byHand(t, url, FLAGS);
    await bridge.open();
    bridge.child.stdout.pause();
    for (let id = 1; id <= 4; id++) {
      bridge.send({ jsonrpc: '2.0', id, method: 'tools/call',
        params: { name: 'x', arguments: { n: 50 * MIB } } });
    }
    await until(() => bridge.said.includes('standard output'), PATIENT.within,
      'a sentence');
    assert.match(bridge.said, /the standard output cannot be written: .*(128 MiB|limit)/);
    bridge.child.stdout.destroy();
    assert.equal(await bridge.ended, 1);
  });
});

suite('odd bytes from the host', () => {
  test('each line gets its answer, and the session lives', async t => {
    const { url } = await sized(t);
    const bridge = byHand(t, url, FLAGS);
    await bridge.open();
    const odd = ['\x00', '\xff\xfe', '{"jsonrpc":"2.0","id":', '"text"', '42', 'null', '[]', '[[]]', '{}',
      '{"jsonrpc":"2.0","id":{},"method":"ping"}', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
      `${'['.repeat(5000)}`, '{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}',
      '{"jsonrpc":"2.0","id":7,"method":42}',
      '{"jsonrpc":"2.0","id":8,"method":"tools/call","params":[1]}'];
    const before = bridge.lines.length;
    for (const line of odd) bridge.child.stdin.write(Buffer.from(`${line}\n`, 'latin1'));
    await until(() => bridge.lines.length >= before + odd.length, 5000, 'an answer to each');
    await sleep(100);
    assert.equal(bridge.lines.length, before + odd.length);
    for (const line of bridge.lines.slice(before)) {
      assert.ok(JSON.parse(line).error, line);
    }
    bridge.send('\r\n\r\n   \n'); // no messages, or not worth an end
    const { result } = await bridge.tool('x');
    assert.equal(result.content[0].text, 'x');
    assert.equal(await bridge.close(), 0);
  });

  test('an endless line is dropped at 16 MiB, told, and the next one counts', async t => {
    const { url } = await sized(t);
    const bridge = byHand(t, url, FLAGS);
    await bridge.open();
    bridge.send(`{"x":"${'y'.repeat(17 * MIB)}"}\n`);
    await until(() => bridge.lines.some(line => line.includes('longer than 16 MiB')), 8000, 'a refusal');
    assert.ok((await bridge.tool('x')).result);
  });

  test('escapes and every plane of Unicode pass unchanged', async t => {
    const server = await played(t, (method, message) =>
      (method === 'tools/call' ? { content: [], structuredContent: message.params.arguments } : undefined));
    const bridge = byHand(t, server.url, FLAGS);
    await bridge.open();
    const value = { '\u0000\u001f"\\/': 'é漢😀\u2028\u2029\ufeff', n: [1e-7, -0.5, 12345678901] };
    assert.deepEqual((await bridge.tool('x', value)).result.structuredContent, value);
  });
});
