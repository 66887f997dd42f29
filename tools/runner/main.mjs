// Runs the stages one after the other, prints each one's counts and time, and closes with one
// line 'N passed, N failed'. A stage that ran nothing has failed: it would prove nothing.
//
// STAGES=unit,system   only these (for developers; CI runs all)
import { mkdirSync, rmSync } from 'node:fs';
import { stages } from './stages.mjs';
import { LOGS } from './run.mjs';

function chosen() {
  const wanted = process.env.STAGES?.split(',').filter(Boolean);
  if (!wanted?.length) return stages;
  const unknown = wanted.filter(name => !stages.some(stage => stage.name === name));
  if (unknown.length) {
    console.error(`No stage is called ${unknown.join(', ')}. There are: ` +
      stages.map(stage => stage.name).join(', '));
    process.exit(2);
  }
  const needed = new Set(wanted);
  for (const stage of stages.toReversed()) {
    if (needed.has(stage.name)) stage.needs?.forEach(name => needed.add(name));
  }
  return stages.filter(stage => needed.has(stage.name));
}

async function runStage(stage, results) {
  const blocked = stage.needs?.find(name => results.get(name)?.failed);
  if (blocked) return { passed: 0, failed: 1, notes: [`not run: ${blocked} failed`] };
  try {
    return await stage.run();
  } catch (error) {
    return { passed: 0, failed: 1, notes: [error.message] };
  }
}

const seconds = ms => `${(ms / 1000).toFixed(1)} s`;

if (!process.env.STAGES) rmSync(LOGS, { recursive: true, force: true });
mkdirSync(LOGS, { recursive: true });
const results = new Map();
const begin = Date.now();
for (const stage of chosen()) {
  console.log(`--- ${stage.name}: ${stage.what}`);
  const start = Date.now();
  const result = { skipped: 0, notes: [], ...await runStage(stage, results) };
  if (result.passed + result.failed === 0) {
    result.failed = 1;
    result.notes.push('this stage ran no test');
  }
  result.ms = Date.now() - start;
  results.set(stage.name, result);
  for (const note of result.notes) console.log(note);
  console.log(`    ${result.failed ? 'FAILED' : 'ok'}: ${result.passed} passed, ` +
    `${result.failed} failed, ${seconds(result.ms)}`);
}

console.log('\nstage               passed  failed  skipped      time');
const total = { passed: 0, failed: 0, skipped: 0 };
for (const [name, result] of results) {
  console.log(name.padEnd(18) + String(result.passed).padStart(8) +
    String(result.failed).padStart(8) + String(result.skipped).padStart(9) +
    seconds(result.ms).padStart(10));
  for (const key of Object.keys(total)) total[key] += result[key];
}
console.log(`all of it in ${((Date.now() - begin) / 60_000).toFixed(1)} minutes; ` +
  `what each stage said is in ${LOGS}\n`);
console.log(`${total.passed} passed, ${total.failed} failed` +
  (total.skipped ? `, ${total.skipped} skipped` : ''));
process.exitCode = total.failed ? 1 : 0;
