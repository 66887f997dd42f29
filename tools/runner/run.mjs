// Runs one command of a stage: its output goes to a log file and, when it fails, its end to the
// screen. Nothing here knows what is run.
import { spawn } from 'node:child_process';
import { createWriteStream, readFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(import.meta.dirname, '../..');
export const LOGS = 'build-logs';
export const NODE = process.execPath;
process.chdir(ROOT);

const TAIL_LINES = 60;
const STEP_MINUTES_MAX = 20;

// Resolves to { code, log, text() } and never rejects: the stage judges.
export function run(log, command, args, { env = {}, cwd, minutes = STEP_MINUTES_MAX } = {}) {
  const file = path.join(LOGS, log + '.log');
  const out = createWriteStream(path.resolve(file));
  return new Promise(resolve => {
    const child = spawn(command, args, {
      cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const timer = setTimeout(() => {
      out.write(`\nended after ${minutes} minutes\n`);
      child.kill('SIGKILL');
    }, minutes * 60_000);
    child.stdout.on('data', chunk => out.write(chunk));
    child.stderr.on('data', chunk => out.write(chunk));
    child.on('error', error => out.write(`${command}: ${error.message}\n`));
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      out.end(() => resolve({
        code: code ?? signal ?? -1, log: file, text: () => readFileSync(file, 'utf8') }));
    });
  });
}

export function tail(result, lines = TAIL_LINES) {
  return result.text().trimEnd().split('\n').slice(-lines).map(line => '    ' + line).join('\n');
}

// A command that is one test: it passes when it ends with 0.
export async function one(log, command, args, options) {
  const result = await run(log, command, args, options);
  if (result.code === 0) return { passed: 1, failed: 0, notes: [] };
  return { passed: 0, failed: 1, notes: [`${log} ended with ${result.code}:`, tail(result)] };
}

// A command that prints 'ok ...' or 'not ok ...' for each of its tests.
export async function tap(log, command, args, options) {
  const result = await run(log, command, args, options);
  const lines = result.text().split('\n');
  const bad = lines.filter(line => line.startsWith('not ok '));
  const failed = Math.max(bad.length, result.code === 0 ? 0 : 1);
  return {
    passed: lines.filter(line => line.startsWith('ok ')).length, failed,
    notes: failed ? [...bad, tail(result)] : [] };
}

export function add(...results) {
  const sum = { passed: 0, failed: 0, skipped: 0, notes: [] };
  for (const result of results.flat()) {
    sum.passed += result.passed;
    sum.failed += result.failed;
    sum.skipped += result.skipped ?? 0;
    sum.notes.push(...result.notes ?? []);
  }
  return sum;
}

// Runs `work` on each item, `width` at a time; results in the order of the items.
export async function pool(items, width, work) {
  const results = new Array(items.length);
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const i = next++;
      results[i] = await work(items[i]);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  return results;
}
