// tokens.js — computes the places of a recorded run's tokens after a number of activations.
'use strict';

/** Replays activations one by one: each takes the tokens at its inputs and puts some at its outputs. */
class Tokens {
  constructor(model) {
    const run = model.run;
    this.model = model;
    this.run = run;
    const activation = ([node, instance, iteration, isDead, taken, hasFailed]) => ({
      node: model.nodes[node], instance, iteration, isDead: Boolean(isDead), taken, hasFailed: Boolean(hasFailed),
    });
    // A long run has its first and last activations, with null for the omitted ones.
    this.activations = run.activations.map((at) => at && activation(at));
    this.gap = this.activations.indexOf(null);
    this.length = this.activations.length + (this.gap < 0 ? 0 : run.leftOut - 1);
    this.failure = run.failure && {
      message: run.failure.message, at: run.failure.at && activation(run.failure.at), step: this.stepOf(run.failure.after) + 1,
    };
    this.kind = new Map();  // by node: Enter, Merge, ...
    for (const [kind, nodes] of Object.entries(run.kinds)) {
      for (const node of nodes) this.kind.set(model.nodes[node], kind);
    }
    this.instances = run.instances.map(([frame, parent, iteration]) => ({ frame, parent, iteration }));
    this.inner = new Map(this.instances.map((instance, i) => [
      `${instance.frame} ${instance.parent} ${instance.iteration}`, i]));
    this.ends = this.endsOfFrames();
    this.reset();
  }

  reset() {
    this.at = 0;
    this.onEdge = new Map();   // by edge: by tag, whether the token is dead
    this.last = new Map();     // by node: its last activation
    this.counts = new Map();   // by node: numbers of live and dead activations
    this.merged = new Map();   // by Merge: the tags it has fired for
  }

  /** Returns the number of activations of the run that have ended at a step, with the omitted ones. */
  endedAt(step) {
    return step + (this.gap >= 0 && step > this.gap ? this.run.leftOut - 1 : 0);
  }

  /** Returns the step after this number of activations; the step of the gap if they are omitted. */
  stepOf(ended) {
    if (this.gap < 0 || ended <= this.gap) return ended;
    return Math.max(this.gap, ended - this.run.leftOut + 1);
  }

  /** Sets the state after `step` activations. */
  goTo(step) {
    if (step < this.at) this.reset();
    while (this.at < step) {
      const activation = this.activations[this.at++];
      const ends = this.ends.get(this.at) || [];
      if (activation) {
        this.fire(activation);
        for (const end of ends) this.end(end);
      } else {
        this.skip(ends);
      }
    }
  }

  /** After the omitted activations, only the constants of frames that have not ended are known. */
  skip(ends) {
    const over = new Set(ends.map(({ instance }) => `${instance} ∀`));
    for (const tags of this.onEdge.values()) {
      for (const tag of tags.keys()) if (!tag.endsWith('∀') || over.has(tag)) tags.delete(tag);
    }
    this.last.clear();
    this.merged.clear();
    for (const [id, live, dead] of this.run.leftOutCounts) {
      const count = this.counts.get(this.model.nodes[id]) || { live: 0, dead: 0 };
      this.counts.set(this.model.nodes[id], { live: count.live + live, dead: count.dead + dead });
    }
  }

  fire(activation) {
    const { node, instance, iteration, isDead } = activation;
    const mine = `${instance} ${iteration}`;
    for (const edge of node.reads) this.onEdge.get(edge)?.delete(mine);  // a constant stays
    this.last.set(node, activation);
    if (activation.hasFailed) return;
    if (this.kind.get(node) === 'Merge') {
      if (!this.merged.has(node)) this.merged.set(node, new Set());
      this.merged.get(node).add(mine);
    }
    for (const edge of node.readers) {
      const tag = this.tagBehind(activation);
      if (tag === undefined) continue;
      const wasNotTaken = this.kind.get(node) === 'Switch' && edge.kind !== 'order' &&
          activation.taken !== edge.output;
      this.put(edge, tag, isDead || wasNotTaken);
    }
    const count = this.counts.get(node) || { live: 0, dead: 0 };
    count[isDead ? 'dead' : 'live'] += 1;
    this.counts.set(node, count);
  }

  /** Puts a token on an edge. A Merge takes the first live token and drops later ones. */
  put(edge, tag, isDead) {
    if (this.merged.get(edge.to)?.has(tag)) return;
    if (!this.onEdge.has(edge)) this.onEdge.set(edge, new Map());
    this.onEdge.get(edge).set(tag, isDead);
  }

  /**
   * Returns by step the frames that end after it. An Exit that is dead in the last iteration emits
   * its dead token only then: before, a later iteration might have left through it.
   */
  endsOfFrames() {
    const newest = new Map(), open = new Map(), last = new Map();  // by instance
    for (const [instance, iteration, begins, after] of this.run.iterations) {
      if (begins) newest.set(instance, iteration);
      open.set(instance, (open.get(instance) || 0) + (begins ? 1 : -1));
      last.set(instance, after);
    }
    const ends = new Map();
    const deadExits = new Map();
    for (const [instance, after] of last) {
      if (open.get(instance)) continue;  // the record was cut
      deadExits.set(instance, []);
      if (!ends.has(after)) ends.set(after, []);
      ends.get(after).push({ instance, exits: deadExits.get(instance) });
    }
    for (const { node, instance, iteration, isDead } of this.activations.filter((at) => at)) {
      if (!isDead || this.kind.get(node) !== 'Exit' || iteration !== newest.get(instance)) continue;
      deadExits.get(instance)?.push(node);
    }
    return ends;
  }

  /** Ends a frame: it emits the dead tokens of its Exits, and its constants' tokens disappear. */
  end({ instance, exits }) {
    const { parent, iteration } = this.instances[instance];
    for (const exit of exits) {
      for (const edge of exit.readers) this.put(edge, `${parent} ${iteration}`, true);
    }
    for (const tags of this.onEdge.values()) tags.delete(`${instance} ∀`);
  }

  /** Returns the execution of a frame and the iteration that a node's outputs belong to. */
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

  /** Returns an execution of a frame and the executions around it. */
  instancesAround(instance) {
    const all = [];
    for (; instance >= 0; instance = this.instances[instance].parent) all.push(instance);
    return all;
  }

  /**
   * Returns "3.0" for iteration 0 of a loop in iteration 3 of the outer loop; empty outside all
   * loops.
   */
  tagText(instance, iteration) {
    const { parent, iteration: outer } = this.instances[instance];
    if (parent < 0) return '';
    const around = this.tagText(parent, outer);
    return around ? `${around}.${iteration}` : `${iteration}`;
  }

  /** Returns by execution of a frame the iterations that have begun and not finished. */
  inFlight() {
    const open = new Map();
    for (const [instance, iteration, begins, after] of this.run.iterations) {
      if (after > this.at) break;
      if (!open.has(instance)) open.set(instance, new Set());
      if (begins) open.get(instance).add(iteration);
      else open.get(instance).delete(iteration);
    }
    return [...open].filter(([, iterations]) => iterations.size)
      .map(([instance, iterations]) => [instance, [...iterations]]);
  }
}
