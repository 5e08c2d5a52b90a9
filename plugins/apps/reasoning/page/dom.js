// Elements. Data only ever becomes text, never markup.

const found = (id) => document.getElementById(id);

/** An element with its classes and children; strings among them become text. */
function make(tag, classes, ...children) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A button that does something. */
function button(text, action) {
  const element = make("button", "", text);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

/** A document as people read it. */
const pretty = (value) => JSON.stringify(value, null, 2);

/** Something to open that is filled when it is, since most never are. */
function unfold(details, fill) {
  details.addEventListener("toggle", () => details.childElementCount > 1 || details.append(fill()), {
    once: true,
  });
  return details;
}
