// elk.js — runs ELK in a worker, so that the page stays responsive.
'use strict';

class Elk {
  constructor(source) {
    this.address = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    this.waiting = new Set();  // reject functions of the layouts in progress
  }

  layout(graph) {
    this.elk ??= new ELK({ workerFactory: () => new Worker(this.address) });
    return new Promise((resolve, reject) => {
      this.waiting.add(reject);
      this.elk.layout(graph).then(resolve, reject).finally(() => this.waiting.delete(reject));
    });
  }

  /** Cancels layouts in progress that are no longer needed: a worker does one thing at a time. */
  drop() {
    if (!this.waiting.size) return;
    this.elk.terminateWorker();
    this.elk = null;
    for (const reject of this.waiting) reject(Elk.dropped);
    this.waiting.clear();
  }
}

Elk.dropped = new Error('another view is wanted');
