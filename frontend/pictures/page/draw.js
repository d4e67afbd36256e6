// draw.js — draws a laid-out picture as SVG: a group for every node, inside the group of its box.
'use strict';

function svg(name, attributes = {}, text = undefined) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Returns the path of a right-angled line with round corners. */
function pathOf(points, radius = 5) {
  let path = `M${points[0].x} ${points[0].y}`;
  for (let i = 1; i < points.length; ++i) {
    const at = points[i], next = points[i + 1];
    if (!next) { path += `L${at.x} ${at.y}`; break; }
    const before = points[i - 1];
    const toward = (to) => {
      const length = Math.hypot(to.x - at.x, to.y - at.y) || 1;
      const part = Math.min(radius, length / 2) / length;
      return `${at.x + (to.x - at.x) * part} ${at.y + (to.y - at.y) * part}`;
    };
    path += `L${toward(before)}Q${at.x} ${at.y} ${toward(next)}`;
  }
  return path;
}

/** Returns a colour: white for no time, warmer for more. */
function heat(share) {
  const strength = Math.min(1, Math.sqrt(share));
  const mix = (from, to) => Math.round(from + (to - from) * strength);
  return `rgb(${mix(255, 247)}, ${mix(255, 148)}, ${mix(255, 72)})`;
}

/** The visible drawing. It stays unchanged while another layout is being computed. */
class Drawing {
  constructor(canvas, scene, model, layout) {
    Object.assign(this, { canvas, scene, model, layout });
    this.groups = new Map();  // by node
    this.places = new Map();  // by node: its place in the picture
    this.items = [];          // elements that can be out of sight
    this.lines = new Map();   // by edge: its line segments
    this.chips = new Map();   // by edge: the chip in place of its beginning
    const defs = canvas.querySelector('defs');
    if (!defs.childNodes.length) {
      for (const [id, colour] of [['data', '#7b8a9c'], ['capture', '#a3adba'], ['back', '#c2570c'],
        ['order', '#a3adba'], ['picked', '#1d6fd8']]) {
        const marker = svg('marker', {
          id: `head-${id}`, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
          markerUnits: 'userSpaceOnUse', orient: 'auto',
        });
        marker.append(svg('path', { d: 'M0 0.8L8 4L0 7.2z', fill: colour }));
        defs.append(marker);
      }
    }
  }

  /** Replaces the previous drawing. */
  show() {
    const content = document.createDocumentFragment();
    this.inside(this.model.root, content, 0, 0);
    this.scene.replaceChildren(content);
    const { width, height } = this.layout.made.get(this.model.root);
    this.size = { width, height };
  }

  /** Draws the contents of a box with its corner at (x, y) of the picture. */
  inside(box, into, x, y) {
    const made = this.layout.made.get(box);
    for (const route of made.routes) this.route(route, into, x, y);
    for (const chip of made.chips) this.chip(chip, into, x, y);
    for (const node of [...box.children, ...box.inputs, ...box.outputs]) {
      const place = made.places.get(node);
      this.places.set(node, { x: x + place.x, y: y + place.y, width: node.width, height: node.height });
      const group = this.node(node, place, x + place.x, y + place.y);
      into.append(group);
      const isOpen = node.kind === 'box' && !node.isFolded;
      if (!isOpen) this.add(group, x + place.x, y + place.y, node.width, node.height);
    }
  }

  add(element, x, y, width, height) {
    this.items.push({ element, x, y, x2: x + width, y2: y + height, isShown: true });
  }

  /** Hides elements outside the visible part: browsers draw only some hundreds of elements fluently. */
  cull(seen) {
    for (const item of this.items) {
      const isShown = item.x < seen.x2 && item.x2 > seen.x && item.y < seen.y2 && item.y2 > seen.y;
      if (isShown === item.isShown) continue;
      item.isShown = isShown;
      item.element.style.display = isShown ? '' : 'none';
    }
  }

  route({ edge, points, isStub, isLeaving }, into, left, top) {
    const line = svg('path', { class: `edge ${edge.kind}`, d: pathOf(points) });
    if (!(isStub && isLeaving)) {
      const endsAtBorder = !isStub && edge.to.isOnBorder && edge.to.parent !== edge.box && !edge.to.parent.isFolded;
      if (!endsAtBorder) line.setAttribute('marker-end', `url(#head-${edge.kind})`);
    }
    if (!this.lines.has(edge)) this.lines.set(edge, []);
    this.lines.get(edge).push({ line, points, isStub });
    into.append(line);
    const xs = points.map((point) => point.x), ys = points.map((point) => point.y);
    const x = Math.min(...xs), y = Math.min(...ys);
    this.add(line, left + x - 4, top + y - 4, Math.max(...xs) - x + 8, Math.max(...ys) - y + 8);
  }

  chip({ edge, text, x, y, width, height }, into, left, top) {
    const group = svg('g', { class: `chip ${edge.from.role}`, transform: `translate(${x} ${y})`, 'data-id': edge.from.id });
    group.append(svg('rect', { class: 'shape', width, height, rx: height / 2 }));
    group.append(svg('text', { class: 'note', x: width / 2, y: height - 4, 'text-anchor': 'middle' }, text));
    const type = edge.from.types[edge.output];
    group.append(svg('title', {}, [edge.from.label, type].filter((part) => part).join(': ')));
    this.chips.set(edge, group);
    into.append(group);
    this.add(group, left + x, top + y, width, height);
  }

  node(node, { x, y }, left, top) {
    const isBox = node.kind === 'box';
    const shape = node.kind === 'op' ? 'op' : isBox ? 'box' : 'pill';
    const group = svg('g', {
      class: `node ${shape} ${node.role}${isBox && node.depth % 2 === 0 ? ' deep' : ''}`,
      transform: `translate(${x} ${y})`, 'data-id': node.id,
    });
    const rect = svg('rect', {
      class: 'shape', width: node.width, height: node.shapeHeight,
      rx: shape === 'pill' ? kSize.pill / 2 : isBox ? 8 : 4,
    });
    group.append(rect);
    if (isBox) this.boxParts(node, group, left, top);
    else {
      this.warm(group, node);
      const labelWidth = measureText(node.shownLabel, 'label');
      const both = labelWidth + (node.shareText ? measureText(node.shareText, 'note') + 6 : 0);
      const begin = (node.width - both) / 2;
      const base = node.shapeHeight / 2 + 4.2;
      group.append(svg('text', { class: 'label', x: begin, y: base }, node.shownLabel));
      if (node.shareText) {
        group.append(svg('text', { class: 'share', x: begin + labelWidth + 6, y: base }, node.shareText));
      }
    }
    for (const place of node.typePlaces) {
      const isCut = place.text !== place.type;
      const text = svg('text', {
        class: isCut ? 'type cut' : 'type', x: place.x, y: node.height - 4, 'text-anchor': 'middle',
      }, place.text);
      if (isCut) text.append(svg('title', {}, place.type));
      group.append(text);
    }
    this.groups.set(node, group);
    return group;
  }

  boxParts(box, group, left, top) {
    group.append(svg('text', { class: 'title', x: 24, y: 16 }, box.shownLabel));
    if (box.shownNote) group.append(svg('text', { class: 'note', x: 24, y: 31 }, box.shownNote));
    group.append(svg('path', {
      class: 'fold', d: box.isFolded ? 'M10 8l5 4.5l-5 4.5' : 'M8 10l4.5 5l4.5 -5',
    }));
    group.append(svg('rect', {  // click target
      class: 'toggle', x: 2, y: 2, width: 20, height: 22, fill: 'transparent',
    }));
    if (!box.isFolded) this.inside(box, group, left, top);
    else this.warm(group, box);
  }

  /**
   * Colours an op or a box by its time, if it took some. Other nodes have the colours of their
   * kinds.
   */
  warm(group, node) {
    const share = this.model.share(node);
    const hasColour = node.role === 'control' || node.kind === 'input' || node.kind === 'output';
    if (share < 0.01 || hasColour) return;
    group.classList.add('warm');
    group.style.setProperty('--heat', heat(share));
  }

  /** Returns the node, or the folded box that hides it. */
  shownFor(node) {
    let shown = node;
    while (!this.groups.has(shown)) shown = shown.parent;
    return shown;
  }

  /** Returns the place of a node in the picture, or of the box that hides it. */
  placeOf(node) {
    return this.places.get(this.shownFor(node));
  }

  /**
   * Returns the node to look at first: the uppermost input, or the uppermost node if there are no
   * inputs.
   */
  beginning() {
    let first = null;
    for (let box = this.model.root; ; box = first) {
      const inside = [...box.inputs, ...box.children].filter((node) => this.groups.has(node));
      const handedIn = inside.filter((node) => node.kind === 'input');
      const candidates = handedIn.length ? handedIn : inside;
      if (!candidates.length) return first;
      first = candidates.reduce((a, b) => (this.places.get(b).y < this.places.get(a).y ? b : a));
      if (first.kind !== 'box') return first;
    }
  }

  /** Returns the unfolded boxes around a point of the picture, the outermost first. */
  boxesAround(x, y) {
    return this.model.boxes.filter((box) => {
      const place = this.places.get(box);
      return place && x >= place.x && x <= place.x + place.width && y >= place.y &&
          y <= place.y + place.height && this.isOpen(box);
    });
  }

  isOpen(box) {
    return [...box.children, ...box.inputs, ...box.outputs].some((node) => this.groups.has(node));
  }

  mark(name, nodes) {
    for (const group of this.scene.querySelectorAll(`.${name}.node`)) group.classList.remove(name);
    for (const node of nodes) this.groups.get(node)?.classList.add(name);
  }

  markEdges(edges) {
    for (const chip of this.scene.querySelectorAll('.chip.picked')) chip.classList.remove('picked');
    for (const line of this.scene.querySelectorAll('.edge.picked')) {
      line.classList.remove('picked');
      if (line.hasAttribute('marker-end')) line.setAttribute('marker-end', line.dataset.head);
    }
    for (const edge of edges) {
      this.chips.get(edge)?.classList.add('picked');
      for (const { line } of this.lines.get(edge) || []) {
        line.classList.add('picked');
        if (!line.hasAttribute('marker-end')) continue;
        line.dataset.head = line.getAttribute('marker-end');
        line.setAttribute('marker-end', 'url(#head-picked)');
      }
    }
  }
}
