/** The products; prices in euro. `shape` names the drawing (`page/drawing.hbs`), `glaze` its colour in the style sheet. */
export const CATALOGUE = [
  {
    slug: 'tide-mug',
    name: 'Tide mug',
    price: 24,
    shape: 'mug',
    glaze: 'sea',
    line: 'A generous mug with a thumb rest, glazed where the tide would reach.',
    about:
      'Thrown on the wheel, 350 ml, with a handle that three fingers fit. No two waterlines are the same.',
    facts: ['Stoneware, 350 ml', 'Dishwasher and microwave', 'Made in four days'],
  },
  {
    slug: 'dune-bowl',
    name: 'Dune bowl',
    price: 32,
    shape: 'bowl',
    glaze: 'sand',
    line: 'For soup, oats or oranges. Its rim is left bare, the colour of dry sand.',
    about:
      'Wide enough to toss a salad for one, deep enough for ramen. The unglazed rim darkens with years of use.',
    facts: ['Stoneware, 18 cm', 'Dishwasher safe', 'Stacks by four'],
  },
  {
    slug: 'marsh-jug',
    name: 'Marsh jug',
    price: 48,
    shape: 'jug',
    glaze: 'reed',
    line: 'Pours a litre without a drip, and holds an armful of reeds between meals.',
    about:
      'The lip is cut, not pressed, so that it ends a pour cleanly. Heavy at the foot: it stays where you put it.',
    facts: ['Stoneware, 1 litre', 'Wash by hand', 'Signed under the foot'],
  },
  {
    slug: 'pebble-plate',
    name: 'Pebble plate',
    price: 28,
    shape: 'plate',
    glaze: 'clay',
    line: 'Not quite round, as no pebble is. The one everybody reaches for first.',
    about: 'Pressed over a river stone and trimmed by eye. Bread, cheese, a late breakfast.',
    facts: ['Stoneware, 22 cm', 'Dishwasher safe', 'Set of two'],
  },
] as const;

export type Product = (typeof CATALOGUE)[number];

/** `undefined` if the shop has no such product. */
export function findProduct(slug: string): Product | undefined {
  return CATALOGUE.find((product) => product.slug === slug);
}
