// elk.js — ELK in a worker of its own, so that the page can be used meanwhile.
'use strict';

class Elk {
  constructor(source) {
    this.address = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    this.waiting = new Set();  // how to tell those whose layout is under way that it will not come
  }

  layout(graph) {
    this.elk ??= new ELK({ workerFactory: () => new Worker(this.address) });
    return new Promise((resolve, reject) => {
      this.waiting.add(reject);
      this.elk.layout(graph).then(resolve, reject).finally(() => this.waiting.delete(reject));
    });
  }

  /** Ends what nobody waits for any more: a worker does one thing at a time. */
  drop() {
    if (!this.waiting.size) return;
    this.elk.terminateWorker();
    this.elk = null;
    for (const reject of this.waiting) reject(Elk.dropped);
    this.waiting.clear();
  }
}

Elk.dropped = new Error('another view is wanted');
