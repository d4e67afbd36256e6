// main.js — connects the parts of the page: views, folding, selection, keys.
'use strict';

/**
 * Delays the page's load event: programs that take a picture of a page wait for it. An open document
 * in an inner frame is one that still loads.
 */
class LoadingScope {
  constructor() {
    this.frame = document.createElement('iframe');
    this.frame.hidden = true;
    document.body.append(this.frame);
    this.frame.contentDocument.open();
  }

  /** Ends after two frames, when the browser has drawn the changes until now. */
  end() {
    requestAnimationFrame(() => requestAnimationFrame(() => {
      this.frame.contentDocument.close();
      this.frame.remove();
    }));
  }
}

class Page {
  constructor(data) {
    const element = (id) => document.getElementById(id);
    this.canvas = element('canvas');
    this.scene = element('scene');
    this.busy = element('busy');
    this.problem = element('problem');
    this.elk = new Elk(element('elk-worker').textContent);
    this.turn = Promise.resolve();  // the last change of the picture
    this.changes = 0;               // changes in progress or waiting
    this.viewport = new Viewport(this.canvas, this.scene);
    this.viewport.onChange = (seen) => {
      this.drawing?.cull(seen);
      this.sayWhere();
    };
    this.details = new Details(element('details'), (node) => this.goTo(node), () => this.pick(null));
    this.search = new Search(element('query'), element('hits'),
      (node) => this.goTo(node), (found) => this.drawing?.mark('found', found));
    this.runBar = new RunBar(element('run'), this);
    this.views = data.views.map((view) => ({ title: view.title, model: new Model(view) }));
    element('title').textContent = element('title').title = document.title = data.name || 'A graph without a name';
    this.tabs = this.views.map((view) => {
      const tab = document.createElement('button');
      tab.textContent = view.title;
      tab.setAttribute('role', 'tab');
      tab.addEventListener('click', () => this.showView(view));
      return tab;
    });
    if (this.tabs.length > 1) element('views').append(...this.tabs);
    element('unfold').addEventListener('click', () => this.foldAll(false));
    element('fold').addEventListener('click', () => this.foldAll(true));
    element('fit').addEventListener('click', () => this.fit());
    this.canvas.addEventListener('click', (event) => this.onClick(event));
    this.canvas.addEventListener('dblclick', (event) => {
      const node = this.nodeAt(event);
      if (node?.kind === 'box' && !event.target.classList.contains('toggle')) this.toggle(node);
    });
    window.addEventListener('keydown', (event) => this.onKey(event));
    const loading = new LoadingScope();
    this.ready = this.showView(this.views[0]).finally(() => loading.end());
  }

  /**
   * Runs changes of the picture one after the other. No box folds while it is being laid out, and
   * clicks refer to the visible drawing.
   */
  change(action) {
    ++this.changes;
    this.busy.hidden = false;
    const done = this.turn.then(async () => {
      try {
        this.problem.hidden = true;
        await action();
      } catch (error) {
        if (error === Elk.dropped) return;
        console.error(error);
        this.problem.textContent = `This could not be laid out: ${error.message || error}`;
        this.problem.hidden = false;
      } finally {
        this.busy.hidden = --this.changes === 0;
      }
    });
    return this.turn = done;
  }

  /** Selects a view; the previous one stays visible until the new one is laid out. */
  want(view) {
    this.wanted = view;
    this.tabs.forEach((tab, i) => tab.setAttribute('aria-selected', String(this.views[i] === view)));
  }

  showView(view) {
    if (view !== this.wanted) this.elk.drop();
    this.want(view);
    return this.change(async () => {
      if (view !== this.wanted) return;
      if (!view.layout) {
        view.model.foldDownTo(40);
        view.layout = new Layout(view.model, this.elk);
      }
      try {
        await this.draw(view);
      } catch (error) {
        if (this.view && view === this.wanted) this.want(this.view);
        throw error;
      }
      this.legend(document.getElementById('legend'));
      this.search.setModel(this.model);
      this.runBar.show(this.model);
      this.showBeginning();
    });
  }

  showBeginning() {
    const first = this.drawing.beginning();
    this.viewport.fit(this.drawing.size, first && this.drawing.placeOf(first));
  }

  /** Lays out changes, and draws. */
  async draw(view) {
    await view.layout.of(view.model.root);
    if (view !== this.wanted) throw Elk.dropped;
    if (view !== this.view) this.picked = null;
    this.view = view;
    this.model = view.model;
    this.drawing = new Drawing(this.canvas, this.scene, view.model, view.layout);
    this.drawing.show();
    document.getElementById('empty').hidden = view.model.nodes.length > 0;
    this.drawing.cull(this.viewport.seen());
    this.drawing.mark('found', this.search.found);
    this.pick(this.picked);
    this.runBar.redraw();
  }

  /** Returns whether a node belongs to the visible picture, and no other view was selected. */
  isOfPicture(node) {
    return this.view === this.wanted && this.model.nodes[node.id] === node;
  }

  /** Folds or unfolds boxes, and draws. If that fails, restores them. */
  async fold(boxes, isFolded) {
    const changed = boxes.filter((box) => box.isFolded !== isFolded);
    const set = (value) => changed.forEach((box) => {
      box.isFolded = value;
      this.view.layout.invalidate(box);
    });
    set(isFolded);
    try {
      await this.draw(this.view);
    } catch (error) {
      if (error !== Elk.dropped) set(!isFolded);
      throw error;
    }
  }

  /** Folds or unfolds boxes, and keeps a node at its place on the screen. */
  async foldAround(node, boxes, isFolded) {
    const before = this.drawing.placeOf(node);
    await this.fold(boxes, isFolded);
    const after = this.drawing.placeOf(node);
    this.viewport.move((before.x - after.x) * this.viewport.scale, (before.y - after.y) * this.viewport.scale);
  }

  toggle(box) {
    return this.change(async () => {
      if (this.isOfPicture(box)) await this.foldAround(box, [box], !box.isFolded);
    });
  }

  foldAll(isFolded) {
    return this.change(async () => {
      if (this.view !== this.wanted) return;
      await this.fold(this.model.boxes, isFolded);
      this.showBeginning();
    });
  }

  /** Unfolds the boxes that hide a node, selects it, and scrolls to it. */
  goTo(node) {
    return this.change(async () => {
      if (!this.isOfPicture(node)) return;
      this.picked = node;
      const hiding = this.model.foldedAround(node);
      if (hiding.length) await this.fold(hiding, false);
      this.pick(node);
      this.viewport.centre(this.drawing.placeOf(node));
    });
  }

  /**
   * Unfolds the boxes that hide a node, and scrolls to it if it is out of sight. The outermost of
   * these boxes keeps its place.
   */
  reveal(node) {
    return this.change(async () => {
      if (!this.isOfPicture(node)) return;
      const hiding = this.model.foldedAround(node);
      if (hiding.length) await this.foldAround(hiding[0], hiding, false);
      this.viewport.reveal(this.drawing.placeOf(node));
    });
  }

  /** Shows the whole picture. */
  fit() {
    if (this.drawing) this.viewport.fit(this.drawing.size);
  }

  pick(node) {
    if (!this.drawing) return;
    this.picked = node;
    this.drawing.mark('picked', node ? [node] : []);
    const own = node ? [...node.reads, ...node.readers] : [];
    if (node?.kind === 'box') {
      for (const pill of [...node.inputs, ...node.outputs]) {
        own.push(...[...pill.reads, ...pill.readers].filter((edge) => edge.box === node.parent));
      }
    }
    this.drawing.markEdges(own);
    if (node) this.details.show(this.model, node);
    else this.details.hide();
  }

  nodeAt(event) {
    const group = event.target.closest('.node, .chip');
    return group ? this.drawing.model.nodes[Number(group.dataset.id)] : null;
  }

  onClick(event) {
    if (this.viewport.hasDragged) return;
    const chip = event.target.closest('.chip');
    if (chip) return this.goTo(this.drawing.model.nodes[Number(chip.dataset.id)]);
    const node = this.nodeAt(event);
    if (node && event.target.classList.contains('toggle')) {
      if (event.detail < 2) this.toggle(node);  // a double click counts once
      return;
    }
    this.pick(node);
    // The details panel takes space from the picture.
    if (node && node.kind !== 'box') this.viewport.reveal(this.drawing.placeOf(node));
  }

  onKey(event) {
    if (event.target.type === 'search' && event.key !== 'Escape') return;
    if (event.target.type === 'range' && event.key.startsWith('Arrow')) return;  // the slider steps itself
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = {
      '/': () => { document.getElementById('query').focus(); event.preventDefault(); },
      'Escape': () => this.pick(null),
      '0': () => this.fit(),
      '+': () => this.viewport.zoomAtMiddle(1.25),
      '=': () => this.viewport.zoomAtMiddle(1.25),  // the same key without shift
      '-': () => this.viewport.zoomAtMiddle(0.8),
      'ArrowRight': () => this.runBar.step(1),
      'ArrowLeft': () => this.runBar.step(-1),
    }[event.key];
    if (action) action();
  }

  /** Lists the boxes around the middle of the canvas that have their titles out of sight. */
  sayWhere() {
    if (!this.drawing) return;
    const { viewport, drawing } = this;
    const left = -viewport.x / viewport.scale, top = -viewport.y / viewport.scale;
    const x = left + viewport.size.width / 2 / viewport.scale;
    const y = top + viewport.size.height / 2 / viewport.scale;
    const boxes = drawing.boxesAround(x, y).filter((box) => {
      const place = drawing.places.get(box);
      return place.x < left || place.y < top;
    });
    if (boxes.length === this.where?.length && boxes.every((box, i) => box === this.where[i])) return;
    this.where = boxes;
    document.getElementById('where').replaceChildren(...boxes.map((box) => {
      const link = document.createElement('a');
      link.textContent = box.shownLabel;
      link.addEventListener('click', () => this.goTo(box));
      return link;
    }));
  }

  /** Explains the kinds of lines that occur in the model. */
  legend(element) {
    const texts = { data: 'value', capture: 'capture', back: 'next iteration', order: 'control edge' };
    const kinds = new Set(this.model.edges.map((edge) => edge.kind));
    element.replaceChildren(...Object.entries(texts).filter(([kind]) => kinds.has(kind)).map(([kind, text]) => {
      const entry = document.createElement('span');
      const line = svg('svg', { width: 26, height: 8 });
      line.append(svg('path', { class: `edge ${kind}`, d: 'M0 4H24', 'marker-end': `url(#head-${kind})` }));
      entry.append(line, text);
      return entry;
    }));
  }
}

window.page = new Page(JSON.parse(document.getElementById('data').textContent));
