// layout.js — computes places. ELK lays out each box by itself (layered, downwards), inner boxes
// first. In the box around it, a box is a node with inputs on its upper and outputs on its lower
// border. Folding or unfolding a box therefore changes only the boxes around it.
'use strict';

const kSize = {
  op: 24, pill: 19, chip: 15, token: 15, type: 14, gap: 8, side: 14, edge: 10, title: 36, lane: 6, widest: 40,
};

const measureText = (() => {
  const context = document.createElement('canvas').getContext('2d');
  const fonts = {
    label: '12px "Inter", "Segoe UI", "DejaVu Sans", sans-serif',
    title: '600 12.5px "Inter", "Segoe UI", "DejaVu Sans", sans-serif',
    note: '10.5px "Inter", "Segoe UI", "DejaVu Sans", sans-serif',
    type: '10px "DejaVu Sans Mono", Consolas, Menlo, monospace',
  };
  const known = new Map();
  return (text, font) => {
    const key = font + text;
    if (!known.has(key)) {
      context.font = fonts[font];
      known.set(key, Math.ceil(context.measureText(text).width));
    }
    return known.get(key);
  };
})();

/** Returns the text of a type beside an edge; the details show the whole type. */
function shortType(type) {
  return type && type.length > kSize.widest ? `${type.slice(0, kSize.widest - 1)}…` : type || '';
}

/** Returns as much of a type as fits into a width. */
function typeWithin(type, width) {
  const text = shortType(type);
  const whole = text ? measureText(text, 'type') : 0;
  if (whole <= width) return text;
  const length = Math.floor((width * text.length) / whole) - 1;
  return length > 0 ? `${text.slice(0, length)}…` : '…';
}

class Layout {
  constructor(model, elk) {
    this.model = model;
    this.elk = elk;
    this.made = new Map();  // by box: its layout
  }

  /** Drops the layouts of a box and of the boxes around it. */
  invalidate(box) {
    for (; box; box = box.parent) this.made.delete(box);
  }

  /** Returns the layout of a box, and computes the layouts of all visible boxes in it. */
  async of(box) {
    if (this.made.has(box)) return this.made.get(box);
    const open = box.children.filter((node) => node.kind === 'box' && !node.isFolded);
    await Promise.all(open.map((inner) => this.of(inner)));
    for (const node of [...box.children, ...box.inputs, ...box.outputs]) this.measure(node);
    const made = await this.arrange(box);
    this.made.set(box, made);
    return made;
  }

  /** Sets the size of a node and the places of its ports. */
  measure(node) {
    node.ports = new Map();
    const types = node.types.map((type) => ({ text: shortType(type), type, width: 0 }));
    for (const type of types) type.width = type.text ? measureText(type.text, 'type') : 0;
    if (node.kind === 'box' && !node.isFolded) return this.measureOpen(node);
    if (node.kind === 'box') return this.measureFolded(node);
    const isPill = node.kind !== 'op';
    const share = this.model.share(node);
    node.shareText = share >= 0.005 ? shareText(share) : '';
    const inputs = Math.max(0, ...node.reads.map((edge) => edge.input + 1));
    const label = measureText(node.shownLabel, 'label') +
        (node.shareText ? measureText(node.shareText, 'note') + 6 : 0);
    const typesWidth = types.reduce((sum, type) => sum + type.width + 10, 0);
    node.width = Math.max(label + (isPill ? 18 : 20), typesWidth, 34, this.widthOfPorts(inputs));
    node.shapeHeight = isPill ? kSize.pill : kSize.op;
    // Types of outputs are written below the box that they leave.
    const hasTypes = types.some((type) => type.text) && !(node.kind === 'output' && node.isOnBorder);
    node.height = node.shapeHeight + (hasTypes ? kSize.type : 0);
    node.typePlaces = [];
    for (let k = 0; k < inputs; ++k) {
      node.ports.set(`i${k}`, { x: (node.width * (k + 1)) / (inputs + 1), y: 0 });
    }
    let x = (node.width - typesWidth) / 2;
    types.forEach((type, k) => {
      const middle = x + type.width / 2 + 5;
      node.ports.set(`o${k}`, { x: middle, y: node.height });
      if (hasTypes) node.typePlaces.push({ text: type.text, type: type.type, x: middle });
      x += type.width + 10;
    });
    for (const edge of node.readers) {  // edges from nodes without types
      const port = `o${edge.output}`;
      if (!node.ports.has(port)) node.ports.set(port, { x: node.width / 2, y: node.height });
    }
  }

  /** Returns the width that keeps the tokens at this number of ports from overlapping. */
  widthOfPorts(count) {
    return this.model.run ? (count + 1) * kSize.token : 0;
  }

  measureFolded(box) {
    const inside = `${box.opCount} ${box.opCount === 1 ? 'op' : 'ops'}`;
    const share = this.model.share(box);
    box.shownNote = [inside, box.note, share >= 0.005 ? shareText(share) : ''].filter((x) => x).join(' · ');
    const ports = Math.max(box.inputs.length, box.outputs.length) + 1;
    box.width = Math.max(measureText(box.shownLabel, 'title') + 40, measureText(box.shownNote, 'note') + 40,
      Math.min(ports * 9, 600), Math.min((this.typesRead(box).length + 1) * 56, 900), this.widthOfPorts(ports - 1));
    box.shapeHeight = box.height = kSize.title + 4;
    box.inputs.forEach((pill, k) => box.ports.set(
      `p${pill.id}`, { x: (box.width * (k + 1)) / (box.inputs.length + 1), y: 0 }));
    box.outputs.forEach((pill, k) => box.ports.set(
      `p${pill.id}`, { x: (box.width * (k + 1)) / (box.outputs.length + 1), y: box.height }));
    this.placeTypes(box);
  }

  measureOpen(box) {
    const inside = this.made.get(box);
    box.shownNote = inside.note;
    box.width = inside.width;
    box.shapeHeight = box.height = inside.height;
    for (const pill of box.inputs) {
      box.ports.set(`p${pill.id}`, { x: inside.places.get(pill).x + pill.width / 2, y: 0 });
    }
    for (const pill of box.outputs) {
      box.ports.set(`p${pill.id}`, { x: inside.places.get(pill).x + pill.width / 2, y: box.height });
    }
    this.placeTypes(box);
  }

  /** Returns the outputs of a box that the picture around it reads. */
  typesRead(box) {
    return box.outputs.filter((pill) => pill.types[0] && pill.readers.some((edge) => edge.box === box.parent));
  }

  /** Places the types below a box, at its outputs, each cut to the free width. */
  placeTypes(box) {
    const places = this.typesRead(box)
      .map((pill) => ({ type: pill.types[0], x: box.ports.get(`p${pill.id}`).x }))
      .sort((a, b) => a.x - b.x);
    const gap = 6;
    let end = 0;
    box.typePlaces = [];
    places.forEach((place, k) => {
      const next = places[k + 1];
      // Each type may use the width that its neighbour does not need.
      const needed = next ? Math.min(measureText(shortType(next.type), 'type'), next.x - place.x) / 2 : 0;
      const right = next ? Math.max((place.x + next.x) / 2, next.x - needed) - gap / 2 : box.width;
      const width = 2 * Math.min(place.x - end, right - place.x);
      const text = typeWithin(place.type, width);
      const half = measureText(text, 'type') / 2;
      if (place.x - half < end || place.x + half > right) return;
      end = place.x + half + gap;
      box.typePlaces.push({ ...place, text });
    });
    if (!box.typePlaces.length) return;
    box.height += kSize.type;
    for (const pill of box.outputs) box.ports.get(`p${pill.id}`).y = box.height;
  }

  /** Returns ELK's name of the port that an edge ends at. */
  portOf(box, node, port) {
    if (node.isOnBorder && node.parent !== box) return `n${node.parent.id}.p${node.id}`;
    return `n${node.id}.${port}`;
  }

  async arrange(box) {
    const isRoot = box.kind === 'root';
    const nodes = [...box.children, ...box.inputs, ...box.outputs];
    const elkNode = (node) => {
      const options = { 'elk.portConstraints': 'FIXED_POS' };
      if (node.isOnBorder) {
        options['elk.layered.layering.layerConstraint'] =
            node.kind === 'input' ? 'FIRST_SEPARATE' : 'LAST_SEPARATE';
      }
      return {
        id: `n${node.id}`, width: node.width, height: node.height, layoutOptions: options,
        ports: [...node.ports].map(([name, { x, y }]) => ({
          id: `n${node.id}.${name}`, x, y, width: 0, height: 0,
          layoutOptions: { 'elk.port.side': y === 0 ? 'NORTH' : 'SOUTH' },
        })),
      };
    };
    // Edges to the next iteration are drawn beside the contents of the loop.
    const goesRound = (edge) => edge.kind === 'back' && edge.from.isOnBorder && edge.to.isOnBorder &&
        edge.from.parent === box && edge.to.parent === box;
    const round = box.edges.filter(goesRound);
    const edges = box.edges.filter((edge) => !goesRound(edge));
    const chips = [...chipsOf(box, nodes, edges)].map((edge) => {
      const text = chipText(edge);
      return { edge, text, width: measureText(text, 'note') + 12, height: kSize.chip };
    });
    const chipOf = new Map(chips.map(({ edge }, i) => [edge, `c${i}`]));
    const graph = {
      id: 'level',
      layoutOptions: {
        'elk.algorithm': 'layered', 'elk.direction': 'DOWN', 'elk.edgeRouting': 'ORTHOGONAL',
        'elk.separateConnectedComponents': isRoot ? 'true' : 'false',
        'elk.padding': '[top=0,left=0,bottom=0,right=0]',
        'elk.spacing.nodeNode': '16', 'elk.spacing.edgeNode': '10', 'elk.spacing.edgeEdge': '8',
        'elk.spacing.componentComponent': '30',
        'elk.layered.spacing.nodeNodeBetweenLayers': '26',
        'elk.layered.spacing.edgeNodeBetweenLayers': '10',
        'elk.layered.spacing.edgeEdgeBetweenLayers': '8',
        'elk.layered.considerModelOrder.strategy': 'NONE',
        'elk.layered.feedbackEdges': 'true',
        'elk.layered.thoroughness': nodes.length > 300 ? '2' : '7',
      },
      children: [...nodes.map(elkNode), ...chips.map(({ width, height }, i) => ({
        id: `c${i}`, width, height, layoutOptions: { 'elk.portConstraints': 'FIXED_POS' },
        ports: [{ id: `c${i}.o`, x: width / 2, y: height, width: 0, height: 0, layoutOptions: { 'elk.port.side': 'SOUTH' } }],
      }))],
      // Backward edges are reversed for ELK, so that it breaks cycles there.
      edges: edges.map((edge, i) => {
        const chip = chipOf.get(edge);
        const ends = [[chip ? `${chip}.o` : this.portOf(box, edge.from, `o${edge.output}`)],
          [this.portOf(box, edge.to, `i${edge.input}`)]];
        if (edge.kind === 'back') ends.reverse();
        return { id: `e${i}`, sources: ends[0], targets: ends[1] };
      }),
    };
    const laid = await this.runElk(graph);
    return this.read(box, laid, edges, round, chips);
  }

  async runElk(graph) {
    try {
      return await this.elk.layout(graph);
    } catch (error) {
      if (error === Elk.dropped) throw error;
      // Network simplex recurses as deeply as a graph is long.
      graph.layoutOptions['elk.layered.layering.strategy'] = 'LONGEST_PATH_SOURCE';
      return this.elk.layout(graph);
    }
  }

  /** Converts ELK's result into the coordinates of the box. */
  read(box, laid, edges, round, chips) {
    const isRoot = box.kind === 'root';
    const share = isRoot ? 0 : this.model.share(box);
    const note = isRoot ? '' : [box.note, share >= 0.005 ? shareText(share) : ''].filter((x) => x).join(' · ');
    const titleWidth = isRoot ? 0 :
      Math.max(measureText(box.shownLabel, 'title'), note ? measureText(note, 'note') : 0) + 34;
    const lanes = round.length;
    const laneGap = lanes > 12 ? 72 / lanes : kSize.lane;
    const aside = lanes ? kSize.gap + lanes * laneGap : 0;  // space above, below and at the right
    const places = new Map();
    const byId = new Map([...box.children, ...box.inputs, ...box.outputs].map((n) => [`n${n.id}`, n]));
    const pillsBegin = laid.children.reduce((least, { id, x }) => {
      const node = byId.get(id);
      return node?.isOnBorder && node.kind === 'input' ? Math.min(least, x) : least;
    }, Infinity);
    // The title is beside the inputs, or above everything if there are none.
    const left = isRoot ? 0 : Math.max(kSize.side,
      Number.isFinite(pillsBegin) ? titleWidth - pillsBegin : 0);
    const top = isRoot ? 0 : Number.isFinite(pillsBegin) ? kSize.edge + aside : kSize.title + 4;
    for (const child of laid.children) {
      const place = { x: child.x + left, y: child.y + top };
      if (byId.has(child.id)) places.set(byId.get(child.id), place);
      else Object.assign(chips[Number(child.id.slice(1))], place);
    }
    const routes = [];
    laid.edges.forEach((laidEdge) => {
      const edge = edges[Number(laidEdge.id.slice(1))];
      for (const section of laidEdge.sections || []) {
        const points = [section.startPoint, ...(section.bendPoints || []), section.endPoint]
          .map(({ x, y }) => ({ x: x + left, y: y + top }));
        if (edge.kind === 'back') points.reverse();
        routes.push({ edge, points });
      }
    });
    const right = isRoot ? 0 : kSize.side + aside;
    const width = Math.max(left + laid.width + right, titleWidth + right + kSize.side);
    const height = top + laid.height + (isRoot ? 0 : kSize.edge + aside);
    round.forEach((edge, k) => {
      const from = places.get(edge.from), to = places.get(edge.to);
      const x0 = from.x + edge.from.width / 2 + 7, y0 = from.y + edge.from.shapeHeight;
      const x1 = to.x + edge.to.width / 2 + 7, y1 = to.y;
      const away = kSize.gap / 2 + (k + 1) * laneGap;
      const lane = width - kSize.side - aside + kSize.gap + k * laneGap;
      routes.push({
        edge,
        points: [{ x: x0, y: y0 }, { x: x0, y: y0 + away }, { x: lane, y: y0 + away },
          { x: lane, y: y1 - away }, { x: x1, y: y1 - away }, { x: x1, y: y1 }],
      });
    });
    // Stubs between the border and the inputs and outputs on it.
    for (const pill of box.inputs) {
      const x = places.get(pill).x + pill.width / 2;
      for (const edge of pill.reads.filter((edge) => edge.box === box.parent).slice(0, 1)) {
        routes.push({ edge, points: [{ x, y: 0 }, { x, y: places.get(pill).y }], isStub: true });
      }
    }
    for (const pill of box.outputs) {
      const x = places.get(pill).x + pill.width / 2;
      for (const edge of pill.readers.filter((edge) => edge.box === box.parent).slice(0, 1)) {
        routes.push({
          edge, points: [{ x, y: places.get(pill).y + pill.shapeHeight }, { x, y: height }],
          isStub: true, isLeaving: true,
        });
      }
    }
    return { width, height, places, routes, chips, note };
  }
}
