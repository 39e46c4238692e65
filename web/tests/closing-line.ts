// One line per test and the plain closing line that `cargo xtask test` counts.

import type { FullResult, Reporter, TestCase, TestResult } from '@playwright/test/reporter';

export default class ClosingLine implements Reporter {
  private counts = { passed: 0, failed: 0, skipped: 0 };

  onTestEnd(test: TestCase, result: TestResult): void {
    const kind = result.status === 'passed' ? 'passed' : result.status === 'skipped' ? 'skipped' : 'failed';
    this.counts[kind]++;
    console.log(`${kind === 'passed' ? 'ok' : kind} ${test.titlePath().slice(2).join(' › ')} (${result.duration} ms)`);
    for (const error of result.errors) console.log(error.message ?? String(error));
  }

  onError(error: { message?: string }): void {
    this.counts.failed++;
    console.log(error.message ?? 'error');
  }

  onEnd(_result: FullResult): void {
    const { passed, failed, skipped } = this.counts;
    console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  }
}
