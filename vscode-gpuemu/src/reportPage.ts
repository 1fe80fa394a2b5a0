// The HTML report, opened at one failure.

/**
 * The page with a few lines that open the card of a failure and scroll to it. They stand before the page's own policy,
 * which allows no script but the page's. A failure is found by its op and its seed.
 */
export function pageAt(page: string, op: string, seed: string): string {
  const wanted = JSON.stringify({ op, seed }).replaceAll('<', '\\u003c');
  const script = `<script>
addEventListener('load', () => {
  const wanted = ${wanted};
  const cards = [...document.querySelectorAll('details.card')].filter((one) => one.textContent.includes(wanted.seed));
  const card = cards.find((one) => one.textContent.includes('--op ' + wanted.op)) ?? cards[0];
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
