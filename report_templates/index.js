"use strict";
// The language that the browser asks for comes first; nobody is sent anywhere.
for (const wanted of [...navigator.languages].reverse()) {
  const entry = document.querySelector(`[data-code="${wanted.slice(0, 2)}"]`);
  if (entry) entry.parentNode.prepend(entry);
}
