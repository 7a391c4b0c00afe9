(function () {
  "use strict";
  var filter = document.getElementById("filter");
  if (!filter) { return; }
  var rows = null;
  filter.addEventListener("input", function () {
    rows = rows || Array.prototype.map.call(document.querySelectorAll(".chunk .row"), function (row) {
      return { row: row, text: row.textContent.toLowerCase() };
    });
    var wanted = filter.value.toLowerCase();
    rows.forEach(function (r) { r.row.hidden = wanted !== "" && r.text.indexOf(wanted) < 0; });
  });
  function asks(event) { return event.key === "/" && document.activeElement !== filter; }
  document.addEventListener("keydown", function (event) { if (asks(event)) { event.preventDefault(); } });
  document.addEventListener("keyup", function (event) { if (asks(event)) { filter.focus(); } });
})();
