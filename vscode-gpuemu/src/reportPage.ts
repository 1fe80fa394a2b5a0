// The HTML report, opened at one failure.

import type { ValidationResult } from './report.ts';

/**
 * The page with a few lines that open the card of a failure and scroll to it. They stand before the page's own policy,
 * which allows no script but the page's. A failure is found by its seed, and told from others with that seed by its op and
 * its shapes: cases of quick and of thorough runs may share one.
 */
export function pageAt(page: string, { op, seed, shapes }: Pick<ValidationResult, 'op' | 'seed' | 'shapes'>): string {
  const inputs = shapes.map(([name, sizes]) => `${name}[${sizes.join(', ')}]`);
  const wanted = JSON.stringify({ seed, others: [`--op ${op}`, ...inputs] }).replaceAll('<', '\\u003c');
  const script = `<script>
addEventListener('load', () => {
  const wanted = ${wanted};
  const alike = (one) => wanted.others.filter((part) => one.textContent.includes(part)).length;
  const cards = [...document.querySelectorAll('details.card')].filter((one) => one.textContent.includes(wanted.seed));
  const card = cards.sort((left, right) => alike(right) - alike(left))[0];
  if (card) {
    card.open = true;
    card.querySelector('summary')?.focus({ preventScroll: true });
    // The page has its height only after it was laid out.
    const show = () => card.scrollIntoView({ block: 'start' });
    requestAnimationFrame(() => requestAnimationFrame(show));
  }
});
</script>`;
  const head = /<head[^>]*>/i.exec(page);
  return head === null ? page : page.replace(head[0], () => head[0] + script);
}
