/** An image's name with 12 characters of its digest; without a digest, with 12 characters of what follows the colon. */
export function imageName(image: string): string {
  const [name = '', digest] = image.split('@');
  const short = name.slice(name.lastIndexOf('/') + 1);
  if (digest === undefined)
    return `${short.slice(0, short.indexOf(':') + 1)}${short.slice(short.indexOf(':') + 1, short.indexOf(':') + 13)}…`;
  return `${short}@${digest.slice(digest.indexOf(':') + 1).slice(0, 12)}…`;
}

/** An image by its short name; all of it on hover. */
export function ImageMark({ image }: { image: string }) {
  return <code title={image}>{imageName(image)}</code>;
}
