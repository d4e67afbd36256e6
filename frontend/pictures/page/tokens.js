// tokens.js — where the tokens of a recorded run are after so many activations.
'use strict';

/** Replays activations one by one: each takes the tokens at its inputs, and puts some at its outputs. */
class Tokens {
  constructor(model) {
    const run = model.run;
    this.model = model;
    this.run = run;
    this.activations = run.activations.map(([node, instance, iteration, isDead, taken]) => ({
      node: model.nodes[node], instance, iteration, isDead: Boolean(isDead), taken,
    }));
    this.kind = new Map();  // by node: Enter, Merge, ...
    for (const [kind, nodes] of Object.entries(run.kinds)) {
      for (const node of nodes) this.kind.set(model.nodes[node], kind);
    }
    this.instances = run.instances.map(([frame, parent, iteration]) => ({ frame, parent, iteration }));
    this.inner = new Map(this.instances.map((instance, i) => [
      `${instance.frame} ${instance.parent} ${instance.iteration}`, i]));
    this.reset();
  }

  reset() {
    this.at = 0;
    this.onEdge = new Map();   // by edge: by tag, whether it is dead
    this.last = new Map();     // by node: its last activation
    this.counts = new Map();   // by node: live and dead ones
  }

  /** The state after `step` activations. */
  goTo(step) {
    if (step < this.at) this.reset();
    while (this.at < step) this.fire(this.activations[this.at++]);
  }

  fire(activation) {
    const { node, instance, iteration, isDead } = activation;
    const mine = `${instance} ${iteration}`;
    for (const edge of node.reads) this.onEdge.get(edge)?.delete(mine);  // a constant stays
    for (const edge of node.readers) {
      const tag = this.tagBehind(activation);
      if (tag === undefined) continue;
      const wasNotTaken = this.kind.get(node) === 'Switch' && edge.kind !== 'order' &&
          activation.taken !== edge.output;
      if (!this.onEdge.has(edge)) this.onEdge.set(edge, new Map());
      this.onEdge.get(edge).set(tag, isDead || wasNotTaken);
    }
    this.last.set(node, activation);
    const count = this.counts.get(node) || { live: 0, dead: 0 };
    count[isDead ? 'dead' : 'live'] += 1;
    this.counts.set(node, count);
  }

  /** In which execution of a frame, and which of its iterations, what a node gives is. */
  tagBehind({ node, instance, iteration, isDead }) {
    switch (this.kind.get(node)) {
      case 'NextIteration':
        return isDead ? undefined : `${instance} ${iteration + 1}`;
      case 'Exit': {
        if (isDead) return undefined;
        const { parent, iteration: outer } = this.instances[instance];
        return parent < 0 ? undefined : `${parent} ${outer}`;
      }
      case 'Enter': {
        const inner = this.inner.get(`${this.run.enters[node.id]} ${instance} ${iteration}`);
        return inner === undefined ? undefined : `${inner} ${node.role === 'capture' ? '∀' : 0}`;
      }
      default:
        return `${instance} ${iteration}`;
    }
  }

  /** By frame, the iterations that have begun and are not done with. */
  inFlight() {
    const open = new Map();
    for (const [instance, iteration, begins, after] of this.run.iterations) {
      if (after > this.at) break;
      const key = `${instance} ${iteration}`;
      if (begins) open.set(key, [this.instances[instance].frame, iteration]);
      else open.delete(key);
    }
    const byFrame = new Map();
    for (const [frame, iteration] of open.values()) {
      if (!byFrame.has(frame)) byFrame.set(frame, []);
      byFrame.get(frame).push(iteration);
    }
    return byFrame;
  }
}
