// An option is searched for by its words: the search would take the dashes before
// `--exact` for operators, and find nothing.
const post = Worker.prototype.postMessage
Worker.prototype.postMessage = function (message, ...others) {
  if (typeof message?.data === "string") {
    message = { ...message, data: message.data.replace(/(^|\s)--+(?=\w)/g, "$1") }
  }
  return post.call(this, message, ...others)
}
