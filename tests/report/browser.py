#!/usr/bin/env python3
"""Does a real browser show every plot of the report at 1920, 1280 and 400 pixels, light and dark, inside the page's width, with no
text on another, no table's rows stretched by a narrow column, and without an error?
browser.py SERVET-SHOW BIG-PROFILE"""
import json
import re
import shutil
import subprocess
import sys
import tempfile

browser = shutil.which("chromium") or shutil.which("chromium-browser")
if not browser:
    print("skipped: no chromium")
    sys.exit(77)

show, big = sys.argv[1:3]
folder = tempfile.mkdtemp()
subprocess.run([show, big, "--html", f"{folder}/report.html", "--map", "48"], check=True)
# A headless window cannot be 400 pixels wide; a frame can, and the page lays itself out by the frame.
open(f"{folder}/frames.html", "w").write("""<!DOCTYPE html><body><pre id=result>nothing</pre>
<iframe id=huge src=report.html width=1920 height=900></iframe><iframe id=wide src=report.html width=1280 height=900></iframe>
<iframe id=narrow src=report.html width=400 height=900></iframe>
<script>
window.onload = () => {
  const found = {};
  const cross = (a, b) => a.right > b.left + 1.5 && b.right > a.left + 1.5 && a.bottom > b.top + 3 && b.bottom > a.top + 3;
  const overlaps = svg => {
    const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim());
    const boxes = texts.map(t => t.getBoundingClientRect()), found = [];
    for (let i = 0; i < boxes.length; i++) for (let k = 0; k < i; k++)
      if (cross(boxes[i], boxes[k])) found.push(texts[i].textContent.trim() + ' on ' + texts[k].textContent.trim());
    return found.slice(0, 3);
  };
  for (const id of ['huge', 'wide', 'narrow']) {
    const page = document.getElementById(id).contentDocument;
    const plots = [...page.querySelectorAll('figure svg')].map(svg => {
      const box = svg.getBoundingClientRect(), frame = svg.closest('figure').getBoundingClientRect();
      return {name: svg.closest('figure').id, plot: svg.closest('figure').className == 'plot', width: box.width,
              height: box.height, left: frame.left, right: frame.right, beyond: box.right - frame.right,
              overlaps: overlaps(svg), drawn: [...svg.querySelectorAll('path,image,rect,text')].filter(e => e.getBoundingClientRect().width > 1).length};
    });
    // four lines of text; a column that was squeezed makes rows of ten
    const stretched = [...page.querySelectorAll('.scroll tr')].filter(row => row.getBoundingClientRect().height > 110)
      .map(row => row.textContent.slice(0, 60)).slice(0, 3);
    found[id] = {stretched, ground: getComputedStyle(page.body).backgroundColor, plots, overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth};
  }
  document.getElementById('result').textContent = 'RESULT' + JSON.stringify(found) + 'END';
};
</script></body>""")
def shown(*more):
    try:
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--allow-file-access-from-files", f"--user-data-dir={folder}/user",
             "--window-size=2000,2000", "--enable-logging=stderr", *more, "--dump-dom", f"file://{folder}/frames.html"],
            capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        print("skipped: the browser did not finish in 90 s")
        sys.exit(77)
    match = re.search("RESULT(.*)END", done.stdout)
    if not match:
        print("skipped: the browser could not be run here:", done.stderr[-600:])
        sys.exit(77)
    failed.extend(f"the browser says: {line}" for line in done.stderr.splitlines() if ":CONSOLE" in line)
    return json.loads(match.group(1).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def check(found, name):
    for view, width in (("huge", 1920), ("wide", 1280), ("narrow", 400)):
        plots = found[view]["plots"]
        if found[view]["overflow"] > 0:
            failed.append(f"{name}, {view}: the page is {found[view]['overflow']} pixels wider than the screen")
        if found[view]["stretched"]:
            failed.append(f"{name}, {view}: rows of more than four lines: {found[view]['stretched']}")
        if sum(p["plot"] for p in plots) != 13 or len(plots) < 13:
            failed.append(f"{name}, {view}: {[p['name'] for p in plots]}")
        for p in plots:
            if p["width"] < 250 or p["height"] < 100 or p["left"] < 0 or p["right"] > width or p["drawn"] < 10:
                failed.append(f"{name}, {view}: not visible: {p}")
            # on a phone the picture of 256 PUs is scrolled
            if p["beyond"] > 0 and (view != "narrow" or p["plot"]):
                failed.append(f"{name}, {view}: cut off: {p}")
            if p["overlaps"]:
                failed.append(f"{name}, {view}, {p['name']}: text lies on text: {p['overlaps']}")


failed = []
light, dark = shown(), shown("--blink-settings=preferredColorScheme=0")
check(light, "light")
check(dark, "dark")
if light["wide"]["ground"] == dark["wide"]["ground"]:
    failed.append(f"the dark page is as light as the other: {dark['wide']['ground']}")
print("\n".join(failed) or f"{len(light['wide']['plots'])} pictures visible at 1920, 1280 and 400 pixels, light and dark")
shutil.rmtree(folder, ignore_errors=True)
sys.exit(1 if failed else 0)
