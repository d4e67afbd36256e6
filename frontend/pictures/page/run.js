// run.js — a slider over a recorded run: tokens on edges (dead ones grey), and iterations in
// flight.
'use strict';

/** Returns the length of the last straight segment of an edge. */
function lastPiece({ points }) {
  return Math.abs(points.at(-1).y - points.at(-2).y);
}

class RunBar {
  constructor(element, page) {
    Object.assign(this, { element, page });
    const add = (parent, name, className, properties = {}) => {
      const child = Object.assign(document.createElement(name), properties);
      child.className = className;
      parent.append(child);
      return child;
    };
    const controls = add(element, 'div', 'controls');
    this.play = add(controls, 'button', 'play', { textContent: '▶', title: 'Play' });
    this.back = add(controls, 'button', 'back', { textContent: '‹', title: 'A step back (←)' });
    this.next = add(controls, 'button', 'next', { textContent: '›', title: 'A step forward (→)' });
    this.slider = add(controls, 'input', 'slider', { type: 'range', min: 0, value: 0 });
    this.slider.setAttribute('aria-label', 'Step of the run');
    const follow = add(controls, 'label', 'follow', { title: 'Keep the running node in sight, and unfold boxes that hide it' });
    this.follow = add(follow, 'input', '', { type: 'checkbox', checked: true });
    follow.append('follow');
    this.label = add(controls, 'span', 'at');
    this.what = add(element, 'div', 'what');
    this.frames = add(element, 'div', 'frames');
    this.failure = add(element, 'div', 'failure');
    this.failure.addEventListener('click', () => this.goToFailure());
    // While the slider is dragged, no box unfolds; when it is released, boxes may.
    this.slider.addEventListener('input', () => this.goTo(Number(this.slider.value), false));
    this.slider.addEventListener('change', () => this.reveal(true));
    this.back.addEventListener('click', () => this.step(-1));
    this.next.addEventListener('click', () => this.step(1));
    this.play.addEventListener('click', () => this.toggle());
  }

  show(model) {
    this.stop();
    this.element.hidden = !model.run;
    this.tokens = null;
    if (!model.run) return;
    model.tokens ??= new Tokens(model);
    this.tokens = model.tokens;
    this.slider.max = this.tokens.activations.length;
    this.sayFailure();
    this.goTo(this.tokens.at);
  }

  step(by) {
    if (this.tokens) this.goTo(this.tokens.at + by);
  }

  toggle() {
    if (this.timer) return this.stop();
    if (this.tokens.at === this.tokens.activations.length) this.goTo(0);
    this.play.textContent = '❚❚';
    this.timer = setInterval(() => {
      this.step(1);
      if (this.tokens.at === this.tokens.activations.length) this.stop();
    }, 350);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = '▶';
  }

  goTo(step, unfolds = true) {
    const count = this.tokens.activations.length;
    this.tokens.goTo(Math.max(0, Math.min(count, step)));
    this.slider.value = this.tokens.at;
    this.label.textContent = `step ${this.tokens.endedAt(this.tokens.at)} of ${this.tokens.length}`;
    this.say();
    this.page.details.update();
    this.redraw();
    this.reveal(unfolds);
  }

  /** Returns the last activation before the slider's step. */
  last() {
    return this.tokens?.activations[this.tokens.at - 1];
  }

  /** Scrolls to the node that ran last, or to the box that hides it if that must stay folded. */
  reveal(unfolds) {
    const last = this.last();
    const { drawing, viewport } = this.page;
    if (!last || !this.follow.checked || drawing?.model !== this.tokens.model) return;
    if (!unfolds || drawing.groups.has(last.node)) return viewport.reveal(drawing.placeOf(last.node));
    if (this.isUnfolding) return;
    this.isUnfolding = true;
    this.page.reveal(last.node).then(() => {
      this.isUnfolding = false;
      if (this.last() !== last) this.reveal(true);  // the run went on meanwhile
    });
  }

  say() {
    const { tokens } = this;
    const last = this.last();
    if (tokens.at === 0) {
      this.what.textContent = 'Before the first node runs. Each step is a node that consumes its tokens and emits others.';
    } else if (!last) {
      this.what.textContent = `The page has the first ${tokens.gap} steps of this run and the last ` +
        `${tokens.activations.length - tokens.gap - 1}: the ${tokens.run.leftOut} between them are omitted.`;
    } else {
      const where = this.where(last);
      const port = tokens.kind.get(last.node) === 'Switch' && !last.isDead
        ? `, leaves by its ${last.taken ? 'true' : 'false'} port` : '';
      const how = last.hasFailed ? ': failed' : last.isDead ? ': dead, computes nothing' : '';
      this.what.textContent = `${last.node.shownLabel}${where}${port}${how}`;
    }
    this.sayInFlight(last);
  }

  /**
   * Shows a line for every loop: an execution that encloses the last activation, and the number of
   * others.
   */
  sayInFlight(last) {
    const { tokens } = this;
    const around = new Set(last ? tokens.instancesAround(last.instance) : []);
    const byFrame = new Map();
    for (const execution of tokens.inFlight()) {
      const { frame } = tokens.instances[execution[0]];
      if (tokens.run.frames[frame] < 0) continue;  // outside all loops
      if (!byFrame.has(frame)) byFrame.set(frame, []);
      byFrame.get(frame).push(execution);
    }
    this.frames.replaceChildren();
    for (const [, executions] of [...byFrame].sort(([a], [b]) => a - b)) {
      const [instance, iterations] = executions.find(([one]) => around.has(one)) ?? executions[0];
      const entry = document.createElement('span');
      entry.append(`${this.instanceName(instance)}, in flight: `);
      for (const iteration of iterations.sort((a, b) => a - b)) {
        const flight = document.createElement('span');
        flight.className = 'flight';
        flight.textContent = iteration;
        entry.append(flight);
      }
      const others = executions.length - 1;
      if (others) entry.append(` and ${others} more ${others === 1 ? 'execution' : 'executions'} of it`);
      this.frames.append(entry);
    }
  }

  /** Shows the failure of a run: the node and the message. A click leads to the node. */
  sayFailure() {
    const failure = this.tokens.failure;
    this.failure.hidden = !failure;
    if (!failure) return;
    const { at, message } = failure;
    this.failure.textContent = at ? `Failed here: ${at.node.shownLabel}${this.where(at)}\n${message}` : message;
    this.failure.title = at ? 'Go to the step and the node that failed' : '';
  }

  goToFailure() {
    const { at, step } = this.tokens.failure;
    if (!at) return;
    this.goTo(step, false);
    this.page.goTo(at.node);
  }

  /** Returns for example ", iteration 3.2 of inner". */
  where({ instance, iteration }) {
    const frame = this.frameName(this.tokens.instances[instance].frame);
    return frame ? `, iteration ${this.tokens.tagText(instance, iteration)} of ${frame}` : '';
  }

  /** Returns for example "inner in iteration 2 of outer". */
  instanceName(instance) {
    const { frame, parent, iteration } = this.tokens.instances[instance];
    const name = this.frameName(frame);
    const outer = parent < 0 ? '' : this.instanceName(parent);
    return outer ? `${name} in iteration ${iteration} of ${outer}` : name;
  }

  frameName(frame) {
    const box = this.tokens.run.frames[frame];
    return box < 0 ? '' : this.tokens.model.nodes[box].shownLabel;
  }

  /** Marks the nodes that have run, and draws tokens on edges. */
  redraw() {
    const { drawing } = this.page;
    for (const old of this.page.scene.querySelectorAll('.token')) old.remove();
    if (!this.tokens || !drawing || drawing.model !== this.tokens.model) return;
    const last = this.last();
    drawing.mark('fired', last ? [drawing.shownFor(last.node)] : []);
    const failure = this.tokens.failure;
    const hasFailed = failure?.at && this.tokens.at >= failure.step;
    drawing.mark('failed', hasFailed ? [drawing.shownFor(failure.at.node)] : []);
    drawing.mark('dead', [...this.tokens.last].filter(([, at]) => at.isDead).map(([node]) => node));
    const byEnd = new Map();  // two edges share an end if a value and a control edge enter a loop together
    for (const [edge, tags] of this.tokens.onEdge) {
      const route = (drawing.lines.get(edge) || []).find(({ isStub }) => !isStub);
      if (!route || !tags.size) continue;
      const end = route.points.at(-1);
      const key = `${edge.box.id} ${end.x} ${end.y}`;
      if (!byEnd.has(key)) byEnd.set(key, { routes: [], tags: [] });
      byEnd.get(key).routes.push(route);
      byEnd.get(key).tags.push(...tags);
    }
    for (const { routes, tags } of byEnd.values()) {
      this.put(routes.reduce((a, b) => (lastPiece(b) > lastPiece(a) ? b : a)), tags);
    }
  }

  /**
   * Draws the waiting tokens of an edge, above each other on its last straight segment, because
   * tokens of other edges may be beside it. Draws as many as fit, and the number of the others.
   */
  put(route, tags) {
    const { line, points } = route;
    const [from, end] = points.slice(-2);
    const length = lastPiece(route);
    const first = Math.min(15, Math.max(10, length / 2));
    const room = Math.max(1, Math.min(3, Math.floor((length - 8) / kSize.token)));
    const alone = tags.length > room ? room - 1 : tags.length;
    const groups = tags.slice(0, alone).map((tag) => [tag]);
    if (alone < tags.length) groups.push(tags.slice(alone));
    groups.forEach((group, i) => {
      const away = first + kSize.token * i;
      const at = { x: end.x, y: end.y - Math.sign(end.y - from.y) * away };
      const parts = group.map(([tag]) => tag.split(' '));
      const isDead = group.every(([, dead]) => dead);
      const token = svg('g', { class: `token${isDead ? ' dead' : ''}`, transform: `translate(${at.x} ${at.y})` });
      const text = group.length > 1 ? `${alone ? '+' : '×'}${group.length}` : parts[0][1];
      token.append(svg('rect', { x: -6.5, y: -6.5, width: 13, height: 13, rx: 6.5 }));
      const narrow = text.length > 1 ? { textLength: 10, lengthAdjust: 'spacingAndGlyphs' } : {};
      token.append(svg('text', { y: 3.2, ...narrow }, text));
      const what = `${isDead ? 'dead token' : 'token'}${group.length > 1 ? 's' : ''}`;
      const iterations = parts.map(([instance, iteration]) => this.tokens.tagText(instance, iteration)).join(', ');
      token.append(svg('title', {}, iterations ? `${what} of iteration ${iterations}` : what));
      line.parentNode.append(token);
    });
  }
}
