/* The page's style sheet: light and dark, from a phone to a wide screen. Names --ink … --c6 are what plots refer to. */
#ifndef SERVET_REPORT_STYLE_H
#define SERVET_REPORT_STYLE_H

static const char report_style[] =
    ":root{color-scheme:light dark;--ground:#f6f7f9;--card:#fff;--ink:#1d2330;--soft:#5b6475;--muted:#8b93a3;"
    "--line:#dde1e8;--accent:#0b63b5;--warn:#8a4b00;--warn-ground:#fff4e0;--c1:#0072b2;--c2:#d55e00;--c3:#009e73;"
    "--c4:#b1589b;--c5:#3a9bd9;--c6:#b87c00;--box0:#fff;--box1:#d9ecc0;--box2:#eef7df;--box3:#f3f4f6;--box4:#cfd4dc;"
    "--box5:#f0e1e0}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#12151b;--card:#1b2029;--ink:#e7eaf0;--soft:#a6afbf;"
    "--muted:#7d8798;--line:#323a47;--accent:#6db5f5;--warn:#ffcf8a;--warn-ground:#3a2a10;--c1:#4da8e0;--c2:#ff8f4d;"
    "--c3:#3fd0a4;--c4:#e29acb;--c5:#8fd0f5;--c6:#f2bd4a;--box0:#12151b;--box1:#2b4222;--box2:#25351f;--box3:#232a35;"
    "--box4:#3a4352;--box5:#4a3634}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\n"
    "main{max-width:1240px;margin:0 auto;padding:1rem}\n"
    "h1{font-size:1.6rem;margin:.6rem 0 .2rem;overflow-wrap:anywhere}h2{font-size:1.25rem;margin:2rem 0 .6rem}"
    "h3{font-size:1rem;margin:0 0 .4rem}p{margin:.4rem 0;overflow-wrap:anywhere}\n"
    ".lead,figcaption,.note{color:var(--soft)}figcaption,.note{font-size:.9rem}\n"
    "nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem;margin:.8rem 0}a{color:var(--accent)}\n"
    ".grid{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr))}\n"
    ".card,figure{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.8rem;margin:0;"
    "min-width:0}.card+.grid{margin-top:1rem}\n"
    "figure.plot svg{width:100%;height:auto;display:block;max-width:600px;margin:0 auto}"
    "figure svg image{image-rendering:pixelated}\n"
    ".scroll{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:.9rem;width:100%}th,td{text-align:left;padding:.3rem .7rem .3rem 0;"
    "border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--soft);font-weight:600;white-space:nowrap}"
    ".scroll table{min-width:620px}td.n{white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    "dl{display:grid;grid-template-columns:minmax(7rem,auto) 1fr;gap:.2rem 1rem;margin:0}dt{color:var(--soft)}"
    "dd{margin:0;overflow-wrap:anywhere}\n"
    ".warn{background:var(--warn-ground);color:var(--warn);border-radius:.6rem;padding:.6rem .9rem;margin:.6rem 0}\n"
    ".warn ul{margin:.3rem 0;padding-left:1.2rem}\n"
    /* lstopo's boxes by their class; a PU with a worker keeps the colour it was given */
    ".picture svg{display:block;min-width:300px;max-width:100%;height:auto;margin:0 auto}.picture.large "
    "svg{max-width:none}\n"
    ".picture text{fill:var(--ink)}.picture rect{stroke:var(--muted)}.picture rect.Machine{fill:var(--box0)}"
    ".picture rect.Package{fill:var(--box1)}"
    /* lstopo counts as many kinds of groups as there are groups */
    ".picture rect[class^=\"Group\"]{fill:var(--box2)}.picture rect.Core{fill:var(--box4)}"
    ".picture rect[class^=\"L\"]{fill:var(--box3)}.picture rect.NUMANode{fill:var(--box5)}"
    ".picture rect.PU[fill=\"rgb(255,255,255)\"]{fill:var(--box0)}\n"
    ".picture text[fill=\"rgb(255,255,255)\"]{fill:#fff}\n"
    "@media print{:root{color-scheme:light}figure,.card{break-inside:avoid}}\n";

#endif
