// viewport.js — moves and zooms the picture.
'use strict';

class Viewport {
  constructor(canvas, scene) {
    Object.assign(this, { canvas, scene, x: 0, y: 0, scale: 1, isAsked: false, drag: null, hasDragged: false });
    this.size = canvas.getBoundingClientRect();  // cached: reading it in every frame would force a second layout
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      if (event.shiftKey && !event.ctrlKey) {
        this.move(-(event.deltaX || event.deltaY), 0);  // browsers differ in the field they set
      } else {
        const speed = event.ctrlKey ? 0.01 : 0.0016;  // browsers report a pinch as small steps with Ctrl
        this.zoom(Math.exp(-event.deltaY * speed), event.clientX - box.left, event.clientY - box.top);
      }
    }, { passive: false });
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || !event.isPrimary) return;
      this.drag = { x: event.clientX, y: event.clientY, hasMoved: false };
      this.hasDragged = false;
    });
    window.addEventListener('pointermove', (event) => {
      if (!this.drag || !event.isPrimary) return;
      if (!(event.buttons & 1)) return this.endDrag();  // released outside the window
      const dx = event.clientX - this.drag.x, dy = event.clientY - this.drag.y;
      if (!this.drag.hasMoved && Math.hypot(dx, dy) < 4) return;
      this.drag = { x: event.clientX, y: event.clientY, hasMoved: true };
      canvas.classList.add('dragging');
      this.move(dx, dy);
    });
    for (const name of ['pointerup', 'pointercancel']) window.addEventListener(name, () => this.endDrag());
    // After a resize, newly visible elements must be shown.
    new ResizeObserver(([{ contentRect }]) => {
      this.size = contentRect;
      this.apply();
    }).observe(canvas);
  }

  endDrag() {
    if (!this.drag) return;
    this.hasDragged = this.drag.hasMoved;  // then the click that follows is ignored
    this.drag = null;
    this.canvas.classList.remove('dragging');
  }

  move(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.apply();
  }

  zoom(factor, x, y) {
    const scale = Math.min(4, Math.max(0.01, this.scale * factor));
    const real = scale / this.scale;
    this.x = x - (x - this.x) * real;
    this.y = y - (y - this.y) * real;
    this.scale = scale;
    this.apply();
  }

  zoomAtMiddle(factor) {
    this.zoom(factor, this.size.width / 2, this.size.height / 2);
  }

  /** Applies changes, at most once a frame. */
  apply() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.scene.setAttribute('transform', `translate(${this.x} ${this.y}) scale(${this.scale})`);
      this.onChange?.(this.seen());
      this.scene.classList.toggle('far', this.scale < 0.4);
      this.scene.classList.toggle('farther', this.scale < 0.16);
    });
  }

  /** Returns the visible part of the picture, with a margin. */
  seen() {
    const margin = 60 / this.scale;
    return {
      x: -this.x / this.scale - margin, x2: (this.size.width - this.x) / this.scale + margin,
      y: -this.y / this.scale - margin, y2: (this.size.height - this.y) / this.scale + margin,
    };
  }

  /**
   * Shows the whole picture. If that is too small to read, shows `place` and its surroundings
   * instead, if given.
   */
  fit({ width, height }, place) {
    const { width: w, height: h } = this.canvas.getBoundingClientRect();
    const whole = Math.min((w - 48) / width, (h - 72) / height, 1.25);
    const readable = 0.8;
    this.scale = Math.max(whole, place ? readable : 0.01);
    this.x = (w - width * this.scale) / 2;
    this.y = Math.max(36, (h - 40 - height * this.scale) / 2);
    if (place && width * this.scale > w) {
      const least = w - 24 - width * this.scale;  // not beyond the end of the picture
      this.x = Math.min(24, Math.max(least, w / 2 - (place.x + place.width / 2) * this.scale));
    }
    if (place && height * this.scale > h) this.y = Math.min(36, h / 4 - place.y * this.scale);
    this.apply();
  }

  /** Scrolls to a place if it is out of sight. */
  reveal(place) {
    const { width, height } = this.canvas.getBoundingClientRect();
    const x = place.x * this.scale + this.x, y = place.y * this.scale + this.y;
    const isSeen = x >= 0 && y >= 0 && x + Math.min(place.width * this.scale, 200) <= width &&
        y + Math.min(place.height * this.scale, 60) <= height;
    if (!isSeen) this.move(width / 2 - x - (place.width * this.scale) / 2, height / 3 - y);
  }

  centre({ x, y, width, height }) {
    const { width: w, height: h } = this.canvas.getBoundingClientRect();
    if (this.scale < 0.5) this.scale = 0.9;
    const high = Math.min(height, h / this.scale - 40);  // the top of a tall box
    this.x = w / 2 - (x + width / 2) * this.scale;
    this.y = h / 2 - (y + high / 2) * this.scale;
    this.apply();
  }
}
