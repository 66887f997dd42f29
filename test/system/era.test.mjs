// Finding out which era a server is from (MOD-03): whatever stands in front answers server/discover in
// its own way, and initialize follows and works; a silence ends in words. HAProxy is what answers.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { haproxy, limpetReplicas } from './lib/fronts.mjs';
import { inspect } from './lib/inspect.mjs';
import { played } from './lib/played.mjs';
import { LIMPET, run } from './lib/proc.mjs';

const error = (code, message, more = '') =>
  `{"jsonrpc":"2.0","id":1,"error":{"code":${code},"message":"${message}"${more}}}`;
const says = (status, type, body) => `http-request return status ${status} content-type "${type}" ` +
  `string '${body}' if { req.hdr(Mcp-Method) server/discover }`;

// What a legacy server, or something before it, has been seen to say.
const ANSWERS = {
  '400 in text': says(400, 'text/plain', 'bad request'),
  '400 without a body': 'http-request return status 400 if { req.hdr(Mcp-Method) server/discover }',
  'a web page, 404': says(404, 'text/html', '<html>no such page</html>'),
  '405': 'http-request return status 405 hdr Allow GET if { req.hdr(Mcp-Method) server/discover }',
  '406': says(406, 'text/plain', 'not acceptable'),
  '400 and -32600': says(400, 'application/json', error(-32600, 'session required')),
  '404 and -32601': says(404, 'application/json', error(-32601, 'Method not found')),
  '200 and -32601': says(200, 'application/json', error(-32601, 'Method not found')),
  '400 and -32022 with legacy versions': says(400, 'application/json',
    error(-32022, 'Unsupported protocol version', ',"data":{"supported":["2025-11-25"]}')),
};

suite('MOD-03 server/discover is answered by', () => {
  for (const [what, rule] of Object.entries(ANSWERS)) {
    test(what, async t => {
      const [at] = await limpetReplicas(t, 1);
      const url = await haproxy(t, [at], { frontend: rule });
      const listed = await inspect(['--json', url, 'tools']);
      assert.equal(listed.code, 0, listed.stderr);
      assert.ok(listed.json.tools.length > 3);
      const info = await inspect(['--json', url]);
      assert.deepEqual([info.json.era, info.json.protocolVersion], ['legacy', '2025-11-25']);
      const probed = await run(LIMPET, ['probe', '--json', '--sessions', '2', '--calls', '5', url],
        { within: 30_000 });
      assert.equal(JSON.parse(probed.stdout).situation, 'one-process', probed.stdout);
    });
  }

  test('a modern error that leaves no version: final, no initialize', async t => {
    const [at] = await limpetReplicas(t, 1);
    const url = await haproxy(t, [at], { frontend: says(400, 'application/json',
      error(-32022, 'Unsupported protocol version', ',"data":{"supported":["2031-01-01"]}')) });
    const outcome = await inspect([url, 'tools']);
    assert.equal(outcome.code, 1);
    assert.match(outcome.stderr, /speaks only the protocol versions \["2031-01-01"\]/);
  });

  test('nothing: one time-out that says what to do, no loop; --era legacy works', async t => {
    const server = await played(t, method =>
      (method === 'server/discover' ? new Promise(() => {}) : method === 'ping' ? {} : undefined));
    const outcome = await inspect(['--timeout', '1', server.url, 'ping']);
    assert.equal(outcome.code, 1);
    assert.match(outcome.stderr, /server\/discover: no answer within 1\.0 s.*--era legacy/);
    assert.deepEqual(server.seen.map(row => row.message?.method), ['server/discover']);
    assert.equal((await inspect(['--era', 'legacy', server.url, 'ping'])).code, 0);
  });
});
