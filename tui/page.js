// Keys go to the terminal as soon as it draws, without a click first.
new MutationObserver(() => {
  if (document.body.classList.contains("-first-byte")) {
    document.querySelector(".xterm-helper-textarea").focus();
  }
}).observe(document.body, { attributes: true, attributeFilter: ["class"] });
