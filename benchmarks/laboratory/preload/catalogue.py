"""Which programs everyday times: how each is called, which Debian packages it needs, and from what its input is made.

Commands are run by sh in an empty folder for each copy, with $INPUT (shared input, by INPUTS below), $HERE (the program's own folder,
where `make` ran once), $COPY (number of the copy), $PORT (a free TCP port), $PROGRAMS (sources beside this file) and $BUILT
(build/benchmarks). Everything is sized to some tenths of a second to one second on two PUs. Compared are exit status and all output (`compares`:
"output"), after `drop` has taken out what differs by itself: times, dates, process numbers; or the status alone, where a program's
answer depends on which thread comes first. `figure` finds the program's own time in its output, in any unit, instead of wall time.
"""

import dataclasses
import os
import random
import re

LAST_NUMBER = r"([0-9.]+)\s*\Z"

ENVIRONMENT = {
    "OMP_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "2",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "CCACHE_DISABLE": "1",
    "LC_ALL": "C",
}


# Of those, how many threads there are to be.
COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclasses.dataclass
class Program:
    name: str
    packages: tuple
    needs: tuple  # commands, or paths with * that must be there
    command: str
    inputs: tuple = ()
    make: str = ""
    drop: tuple = ()  # regular expressions
    compares: str = "output"
    figure: str = ""
    leaves: bool = False  # it may leave processes behind: they are ended with it

    @property
    def folder(self):
        return re.sub(r"\W+", "-", self.name)

    def read(self, said, folder, port):
        """(figure or None, what is compared of the output)"""
        figure = None
        if self.figure:
            found = re.search(self.figure.encode(), said)
            if found:
                figure = float(found.group(1))
                said = said[: found.start(1)] + said[found.end(1) :]
        said = said.replace(folder.encode(), b"")
        if "$PORT" in self.command:
            said = said.replace(str(port).encode(), b"")
        for expression in self.drop:
            said = re.sub(expression.encode(), b"", said)
        return figure, said


# -- input: each function makes one file or folder --


def write(path, data):
    with open(path, "wb" if isinstance(data, bytes) else "w") as file:
        file.write(data)


def text(path):
    """24 MB that compress to a third, as prose does."""
    rng = random.Random(1)
    words = ["".join(rng.choices("etaoinshrdlucmfwypvbg", k=rng.randint(2, 9))) for _ in range(5000)]
    block = []
    for _ in range(4):
        chosen = rng.choices(words, weights=[1 / (i + 1) for i in range(len(words))], k=250_000)
        block.append("\n".join(" ".join(chosen[i : i + 12]) for i in range(0, len(chosen), 12)))
    whole = "\n".join(block) + "\n"
    parts = [whole[rng.randrange(len(whole) // 2) :][: len(whole) // 3] for _ in range(20)]
    write(path, (whole + "".join(parts))[: 24 << 20])


def lines(path):
    rng = random.Random(2)
    write(path, "".join(f"{rng.getrandbits(60):x} {rng.getrandbits(40):x}\n" for _ in range(500_000)))


def plane(rng, width, height):
    """A picture of soft shapes with some noise."""
    shapes = [(rng.randrange(width), rng.randrange(height), rng.randrange(20, 200)) for _ in range(3)]
    rows = []
    for y in range(height):
        base = sum(((y - b) * (y - b)) // c for _, b, c in shapes)
        noise = rng.getrandbits(2 * width).to_bytes(width // 4 + 1, "little")
        rows.append(bytes((base + ((x - shapes[0][0]) * (x - shapes[1][0]) >> 9) + (noise[x >> 2] & 7)) & 255 for x in range(width)))
    return rows


def picture(path):
    rng, (width, height) = random.Random(3), (1200, 900)
    red, green, blue = (plane(rng, width, height) for _ in range(3))
    data = bytearray(3 * width * height)
    data[0::3], data[1::3], data[2::3] = b"".join(red), b"".join(green), b"".join(blue)
    write(path, b"P6\n%d %d\n255\n" % (width, height) + bytes(data))


def film(path):
    """60 frames of 352 x 288: a window that moves over a larger picture."""
    width, height, frames = 352, 288, 60
    rows = plane(random.Random(4), width + 2 * frames, height + frames)
    with open(path, "wb") as file:
        file.write(b"YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420\n" % (width, height))
        for frame in range(frames):
            window = [row[2 * frame : 2 * frame + width] for row in rows[frame : frame + height]]
            file.write(b"FRAME\n" + b"".join(window) + b"".join(row[::2] for row in window[::2]) + bytes([128]) * (width * height // 4))


def dna(rng, length):
    return "".join(rng.choices("ACGT", k=length))


def mutated(rng, sequence, share, letters):
    return "".join(rng.choice(letters) if rng.random() < share else one for one in sequence)


def genome(path):
    write(path, ">chromosome\n" + dna(random.Random(5), 300_000) + "\n")


def reads(path):
    """12,000 reads of 100 letters of the genome, with errors."""
    rng = random.Random(5)
    whole, said = dna(rng, 300_000), []
    for number in range(12_000):
        begin = rng.randrange(len(whole) - 100)
        said.append(f"@read{number}\n{mutated(rng, whole[begin : begin + 100], 0.01, 'ACGT')}\n+\n{'I' * 100}\n")
    write(path, "".join(said))


def long_reads(path):
    rng = random.Random(5)
    whole, said = dna(rng, 300_000), []
    for number in range(400):
        begin = rng.randrange(len(whole) - 6000)
        said.append(f">read{number}\n{mutated(rng, whole[begin : begin + 6000], 0.06, 'ACGT')}\n")
    write(path, "".join(said))


def family(rng, count, length, letters, share):
    """Sequences that descend from one another."""
    known = ["".join(rng.choices(letters, k=length))]
    while len(known) < count:
        known.append(mutated(rng, rng.choice(known), share, letters))
    return known


AMINO = "ACDEFGHIKLMNPQRSTVWY"


def proteins(path):
    rng = random.Random(6)
    known = [one for _ in range(40) for one in family(rng, 25, 300, AMINO, 0.2)]
    write(path, "".join(f">protein{i}\n{one}\n" for i, one in enumerate(known)))


def few_proteins(path):
    write(path, "".join(f">protein{i}\n{one}\n" for i, one in enumerate(family(random.Random(7), 60, 250, AMINO, 0.15))))


def alignment(path):
    """An alignment of DNA, as FASTA."""
    write(path, "".join(f">taxon{i}\n{one}\n" for i, one in enumerate(family(random.Random(8), 30, 2000, "ACGT", 0.06))))


def small_alignment(path):
    write(path, "".join(f">taxon{i}\n{one}\n" for i, one in enumerate(family(random.Random(8), 10, 500, "ACGT", 0.06))))


def c_project(path):
    rng = random.Random(9)
    os.makedirs(path)
    for number in range(8):
        functions = []
        for k in range(12):
            steps = "".join(f"    for (int i = 0; i < n; i++) x[i] = x[i] * {rng.randint(2, 99)} + (x[i] >> {rng.randint(1, 9)}) - n;\n" for _ in range(2))
            functions.append(f"int part_{number}_{k}(int *x, int n)\n{{\n{steps}    return x[0];\n}}\n")
        write(f"{path}/part{number}.c", "\n".join(functions))
    calls = " + ".join(f"part_{n}_{k}(x, 64)" for n in range(8) for k in range(12))
    write(f"{path}/main.c", "int " + ", ".join(f"part_{n}_{k}(int *, int)" for n in range(8) for k in range(12)) + ";\n"
          f"int main(void)\n{{\n    int x[64] = {{1}};\n    return ({calls}) & 1 ? 0 : 0;\n}}\n")
    objects = " ".join(f"part{n}.o" for n in range(8))
    write(f"{path}/Makefile", f"program: main.o {objects}\n\tcc $^ -o $@\n%.o: $(FROM)/%.c\n\tcc -O2 -c $< -o $@\n")


def rust(path):
    rng = random.Random(10)
    parts = [f"pub mod part{k} {{\n    pub fn work(v: &[u64]) -> Vec<String> {{\n        let mut m = std::collections::BTreeMap::new();\n"
             f"        for (i, x) in v.iter().enumerate() {{ *m.entry(x % {rng.randint(3, 99)}).or_insert(0u64) += i as u64; }}\n"
             f"        m.iter().map(|(k, v)| format!(\"{{}} {{}}\", k, v * {rng.randint(2, 9)})).collect()\n    }}\n}}\n" for k in range(8)]
    calls = "".join(f"    n += part{k}::work(&v).len();\n" for k in range(8))
    write(path, "".join(parts) + f"fn main() {{\n    let v: Vec<u64> = (0..1000).collect();\n    let mut n = 0;\n{calls}    println!(\"{{}}\", n);\n}}\n")


def go_module(path):
    for k in range(6):
        os.makedirs(f"{path}/part{k}")
        functions = "".join(f"func f{i}(v []int) int {{\n\ts := {i}\n\tfor _, x := range v {{\n\t\ts += x*{i + 3} - (s >> {i % 7 + 1})\n\t}}\n\treturn s\n}}\n" for i in range(60))
        calls = " + ".join(f"f{i}(v)" for i in range(60))
        write(f"{path}/part{k}/part.go", f"package part{k}\n\n{functions}\nfunc Sum(v []int) int {{\n\treturn {calls}\n}}\n")
    imports = "".join(f'import "m/part{k}"\n' for k in range(6))
    calls = " + ".join(f"part{k}.Sum(v)" for k in range(6))
    write(f"{path}/main.go", f"package main\n\n{imports}\nfunc main() {{\n\tv := []int{{1, 2, 3}}\n\tprintln({calls})\n}}\n")
    write(f"{path}/go.mod", "module m\n\ngo 1.18\n")


def history(path):
    """A repository of 60 commits on 120 files."""
    os.makedirs(path)
    rng = random.Random(11)
    words = ["".join(rng.choices("etaoinshrdlu", k=6)) for _ in range(3000)]
    stream, mark = [], 0
    contents = {f"file{i}": [" ".join(rng.choices(words, k=10)) for _ in range(150)] for i in range(120)}
    for commit in range(60):
        changed = contents if commit == 0 else rng.sample(sorted(contents), 25)
        blobs = []
        for name in changed:
            for _ in range(5):
                contents[name][rng.randrange(150)] = " ".join(rng.choices(words, k=10))
            mark += 1
            data = "\n".join(contents[name]) + "\n"
            stream.append(f"blob\nmark :{mark}\ndata {len(data)}\n{data}\n")
            blobs.append((name, mark))
        stream.append(f"commit refs/heads/main\ncommitter A <a@b> {1_700_000_000 + commit} +0000\ndata 1\nx\n")
        stream += [f"M 100644 :{m} {n}\n" for n, m in blobs]
    write(f"{path}/stream", "".join(stream))


def caffeine(path):
    atoms = """C 1.07317 0.04885 -0.07573;N 2.51365 0.01256 -0.07580;C 3.35199 1.09592 -0.07533;N 4.61898 0.73028 -0.07549
C 4.57907 -0.63144 -0.07531;C 3.30131 -1.10256 -0.07524;C 2.98068 -2.48687 -0.07377;O 1.82530 -2.90038 -0.07577
N 4.11440 -3.30433 -0.06936;C 5.45174 -2.85618 -0.07235;O 6.38934 -3.65965 -0.07232;N 5.66240 -1.47682 -0.07487
C 7.00947 -0.93648 -0.07524;C 3.92063 -4.74093 -0.06158;H 0.73398 1.08786 -0.07503;H 0.71239 -0.45698 0.82335
H 0.71240 -0.45580 -0.97549;H 2.99301 2.11762 -0.07478;H 7.76531 -1.72634 -0.07591;H 7.14864 -0.32182 0.81969
H 7.14802 -0.32076 -0.96953;H 2.86501 -5.02316 -0.05833;H 4.40233 -5.15920 0.82837;H 4.40017 -5.16929 -0.94780"""
    known = [one for line in atoms.splitlines() for one in line.split(";")]
    write(path, f"{len(known)}\n\n" + "\n".join(known) + "\n")


def scene(path):
    rng = random.Random(12)
    balls = "".join(f"sphere {{ <{rng.uniform(-3, 3):.3f}, {rng.uniform(-2, 2):.3f}, {rng.uniform(0, 5):.3f}>, 0.5 texture {{ pigment {{ color rgb"
                    f" <{rng.random():.2f}, {rng.random():.2f}, {rng.random():.2f}> }} finish {{ reflection 0.3 phong 1 }} }} }}\n" for _ in range(40))
    write(path, "#version 3.7;\nglobal_settings { assumed_gamma 1 }\ncamera { location <0, 1, -6> look_at <0, 0, 2> }\n"
          "light_source { <5, 9, -6> color rgb 1 area_light <1, 0, 0>, <0, 1, 0>, 4, 4 }\nplane { y, -2 pigment { checker rgb 1 rgb 0.3 } }\n" + balls)


def beam(path):
    """A bar of bricks, one end held, the other loaded, for CalculiX."""
    nx, ny, nz = 24, 8, 8
    node = lambda x, y, z: 1 + x + (nx + 1) * (y + (ny + 1) * z)
    said = ["*NODE, NSET=ALL"] + [f"{node(x, y, z)}, {x}, {y}, {z}" for z in range(nz + 1) for y in range(ny + 1) for x in range(nx + 1)]
    said.append("*ELEMENT, TYPE=C3D8, ELSET=BAR")
    number = 0
    for z in range(nz):
        for y in range(ny):
            for x in range(nx):
                number += 1
                corners = [node(x + a, y + b, z + c) for c in (0, 1) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
                said.append(f"{number}, " + ", ".join(map(str, corners)))
    said += ["*NSET, NSET=HELD"] + [f"{node(0, y, z)}," for z in range(nz + 1) for y in range(ny + 1)]
    said += ["*MATERIAL, NAME=STEEL", "*ELASTIC", "210000, 0.3", "*SOLID SECTION, ELSET=BAR, MATERIAL=STEEL", "*STEP", "*STATIC, SOLVER=SPOOLES",
             "*BOUNDARY", "HELD, 1, 3, 0", "*CLOAD", f"{node(nx, ny, nz)}, 3, -100", "*NODE FILE", "U", "*END STEP"]
    write(path, "\n".join(said) + "\n")


def water(path):
    """A molecule of water in a box, for CP2K."""
    kind = "&KIND {}\nBASIS_SET DZVP-MOLOPT-SR-GTH\nPOTENTIAL GTH-PADE-q{}\n&END\n"
    write(path, "&GLOBAL\nPROJECT water\nRUN_TYPE ENERGY\n&END\n&FORCE_EVAL\nMETHOD Quickstep\n&DFT\nBASIS_SET_FILE_NAME BASIS_MOLOPT\n"
          "POTENTIAL_FILE_NAME GTH_POTENTIALS\n&SCF\nMAX_SCF 2\n&END\n&MGRID\nCUTOFF 80\n&END\n&XC\n&XC_FUNCTIONAL PADE\n&END\n&END\n&END\n&SUBSYS\n"
          "&CELL\nABC 4 4 4\n&END\n&COORD\nO 0 0 0\nH 0.76 0.59 0\nH -0.76 0.59 0\n&END\n" + kind.format("H", 1) + kind.format("O", 6) + "&END\n&END\n")


def silicon(path):
    """Its crystal, for pw.x."""
    write(path, "&control\nprefix='si', pseudo_dir='..', outdir='.'\n/\n&system\nibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=40\n/\n&electrons\n/\n"
          "ATOMIC_SPECIES\nSi 28.086 Si.upf\nATOMIC_POSITIONS alat\nSi 0 0 0\nSi 0.25 0.25 0.25\nK_POINTS automatic\n4 4 4 1 1 1\n")


def knapsack(path):
    """An integer program that takes branching."""
    rng = random.Random(13)
    n, m = 60, 12
    weights = [[rng.randint(5, 100) for _ in range(n)] for _ in range(m)]
    said = ["Maximize", " obj: " + " + ".join(f"{rng.randint(20, 120)} x{i}" for i in range(n)), "Subject To"]
    said += [f" c{k}: " + " + ".join(f"{w} x{i}" for i, w in enumerate(row)) + f" <= {sum(row) // 3}" for k, row in enumerate(weights)]
    write(path, "\n".join(said + ["Binary", " " + " ".join(f"x{i}" for i in range(n)), "End"]) + "\n")


INPUTS = {function.__name__: function for function in (
    text, lines, picture, film, genome, reads, long_reads, proteins, few_proteins, alignment, small_alignment, c_project, rust, go_module, history,
    caffeine, scene, beam, water, silicon, knapsack)}


# -- programs --

PYTHON = "/usr/bin/python3"  # Debian's, which sees Debian's modules
MODULES = "/usr/lib/python3/dist-packages/"
TIME = r"[0-9.:]+ ?(ms|us|s|sec|secs|seconds|min|h)\b"


def head(program_input, size):
    return f"head -c {size} $INPUT/{program_input} >data"


def packer(name, package, command, size, tool=None):
    return Program(name, (package,), (tool or command.split()[0],), f"{command} $HERE/data >packed && cksum packed", ("text",), head("text", size))


def python(name, packages, modules, code):
    needs = (PYTHON,) + tuple(MODULES + module for module in modules)
    if code.endswith(".py"):
        return Program(name, packages, needs, f"exec {PYTHON} $PROGRAMS/{code}")
    return Program(name, packages, needs, f"exec {PYTHON} -c '{code}'")


def ours(name, built, figure=LAST_NUMBER, label=None, drop=(), before=""):
    """A program of this folder, which prints its time."""
    return Program(label or name, (), (f"$BUILT/laboratory/preload/{name}",), f"{before}exec $BUILT/laboratory/preload/{built}", figure=figure, drop=drop)


def kernel(name, form):
    started = "exec mpirun --oversubscribe -n 2 " if form == "mpi" else "exec "
    size = "S" if name == "cg" else "W"
    return Program(f"kernel {name} {form}", (), (f"$BUILT/kernels/{name}_{form}",), f"{started}$BUILT/kernels/{name}_{form} {size}",
                   drop=(r"(time|rate|ranks, threads) .*\n",), leaves=form == "mpi")


def ffmpeg(name, options):
    return Program(name, ("ffmpeg",), ("ffmpeg",), f"exec ffmpeg -nostdin -hide_banner -loglevel error -i $INPUT/film {options} -y out.mkv", ("film",))


NUMPY, SCIPY, SKLEARN, TORCH = ("python3-numpy", "libopenblas0-pthread"), ("python3-scipy", "libopenblas0-pthread"), ("python3-sklearn", "libopenblas0-pthread"), ("python3-torch",)

COMPRESSORS = [
    packer("zstd -T2", "zstd", "zstd -q -T2 -9 -c", "22M"),
    packer("zstd -T1", "zstd", "zstd -q -T1 -6 -c", "12M"),
    packer("xz -T2", "xz-utils", "xz -T2 -2 --block-size=512KiB -c", "8M"),
    packer("pigz", "pigz", "pigz -p2 -6 -n -c", "22M"),
    packer("pbzip2", "pbzip2", "pbzip2 -q -p2 -c", "10M"),
    packer("lbzip2", "lbzip2", "lbzip2 -n2 -c", "13M"),
    packer("plzip", "plzip", "plzip -n2 -2 --data-size=512KiB -c", "7M"),
    Program("lrzip", ("lrzip",), ("lrzip",), "lrzip -q -p 2 -L 5 -o packed $HERE/data >log 2>&1 && lrzip -q -d -p 2 -o plain packed >log 2>&1 && cksum plain", ("text",), head("text", "2M")),
    Program("7zz", ("7zip",), ("7zz",), "7zz a -mmt2 -mx3 -bd -bso0 -bsp0 packed.7z $HERE/data && 7zz x -so packed.7z | cksum", ("text",), head("text", "3M")),
    Program("xargs -P2 gzip", (), ("xargs", "gzip"), "cp $HERE/part* . && ls part* | xargs -P2 -n1 gzip -n && cat part* | cksum", ("text",),
            head("text", "12M") + " && split -n 8 data part"),
]

PICTURES = [
    Program("gm blur", ("graphicsmagick",), ("gm",), "gm convert $INPUT/picture -blur 0x30 out.ppm && cksum out.ppm", ("picture",)),
    Program("gm resize", ("graphicsmagick",), ("gm",), "gm convert $INPUT/picture -resize 3000x2200 out.ppm && cksum out.ppm", ("picture",)),
    Program("ImageMagick", ("imagemagick",), ("convert-im6.q16",), "convert-im6.q16 $INPUT/picture -resize 900x700 -gaussian-blur 0x1 out.ppm && cksum out.ppm", ("picture",)),
    Program("cwebp -mt", ("webp",), ("cwebp",), "cwebp -quiet -mt -m 5 -q 80 $INPUT/picture -o out.webp && cksum out.webp", ("picture",)),
    Program("cjxl", ("libjxl-tools",), ("cjxl",), "cjxl --quiet --num_threads=2 -e 5 $INPUT/picture out.jxl && cksum out.jxl", ("picture",)),
    Program("povray", ("povray",), ("povray",), "exec povray +WT2 -D -V +W640 +H480 +I$INPUT/scene +Oout.png", ("scene",), compares="status"),
]

FILMS = [
    ffmpeg("ffmpeg x264", "-c:v libx264 -preset medium -threads 2"),
    ffmpeg("ffmpeg x265", "-frames:v 25 -c:v libx265 -preset fast -x265-params pools=2:log-level=none"),
    ffmpeg("ffmpeg vp9", "-frames:v 40 -c:v libvpx-vp9 -deadline realtime -cpu-used 6 -row-mt 1 -tile-columns 1 -threads 2"),
    ffmpeg("ffmpeg filters", "-filter_threads 2 -vf scale=1280:960,gblur=sigma=3,unsharp -c:v rawvideo -frames:v 40 -f null"),
    Program("SvtAv1EncApp --lp 2", ("svt-av1",), ("SvtAv1EncApp",), "exec SvtAv1EncApp -i $INPUT/film -b out.ivf --lp 2 --preset 9 -n 50", ("film",), compares="status"),
]

BIOLOGY = [
    Program("hmmsearch", ("hmmer",), ("hmmsearch", "hmmbuild"), "exec hmmsearch --cpu 2 --max $HERE/model $HERE/some", ("proteins", "few_proteins"),
            "head -n 24 $INPUT/proteins >family; head -n 1400 $INPUT/proteins >some; hmmbuild model family >/dev/null", drop=(r"# CPU time:.*\n", r"# Mc/sec:.*\n")),
    Program("raxml", ("raxml",), ("raxmlHPC-PTHREADS",), "exec raxmlHPC-PTHREADS -T 2 -m GTRCAT -p 1 -s $INPUT/small_alignment -n out -F", ("small_alignment",), compares="status"),
    Program("iqtree2", ("iqtree",), ("iqtree2",), "exec iqtree2 -s $INPUT/small_alignment -m JC -T 2 -seed 1 -pre out -quiet -n 12", ("small_alignment",)),
    Program("FastTreeMP", ("fasttree",), ("fasttreeMP",), "exec fasttreeMP -quiet -nopr -nt $INPUT/alignment", ("alignment",)),
    Program("mafft", ("mafft",), ("mafft",), "exec mafft --thread 2 --quiet --retree 2 $INPUT/few_proteins", ("few_proteins",)),
    Program("clustalo", ("clustalo",), ("clustalo",), "exec clustalo --threads=2 -i $HERE/some", ("few_proteins",), "head -n 60 $INPUT/few_proteins >some"),
    Program("kalign", ("kalign",), ("kalign",), "exec kalign -n 2 -i $HERE/some -o out", ("proteins",), "head -n 500 $INPUT/proteins >some", compares="status"),
    Program("vsearch", ("vsearch",), ("vsearch",), "vsearch --threads 2 --quiet --usearch_global $HERE/some --db $INPUT/long_reads --id 0.8 --maxaccepts 4 --maxrejects 64 --blast6out out && sort out", ("long_reads", "reads"),
            "head -n 600 $INPUT/reads | sed -n '1~4s/@/>/p;2~4p' >some"),
    Program("bowtie2", ("bowtie2",), ("bowtie2", "bowtie2-build"), "bowtie2 -p 2 --reorder --no-hd -x $HERE/index -U $INPUT/reads,$INPUT/reads -S out && cat out", ("genome", "reads"), "bowtie2-build -q $INPUT/genome index"),
    Program("bwa mem", ("bwa",), ("bwa",), "exec bwa mem -v 1 -t 2 $HERE/genome $INPUT/reads", ("genome", "reads"), "cp $INPUT/genome . && bwa index genome", drop=(r"@PG.*\n", r"\[main\].*\n")),
    Program("minimap2", ("minimap2",), ("minimap2",), "exec minimap2 -t 2 -x map-ont --secondary=no $INPUT/genome $INPUT/long_reads", ("genome", "long_reads"), drop=(r"\[M::.*\n",)),
    Program("samtools sort", ("samtools",), ("samtools", "bwa"), "samtools sort -@ 2 -m 20M $HERE/in.sam -o out.bam && samtools view -c out.bam", ("genome", "reads"),
            "cp $INPUT/genome . && bwa index genome && bwa mem genome $INPUT/reads >one.sam && grep ^@ one.sam >in.sam && for i in 1 2 3 4 5 6; do grep -v ^@ one.sam >>in.sam; done"),
    Program("blastp", ("ncbi-blast+",), ("blastp", "makeblastdb"), "exec blastp -num_threads 2 -query $HERE/some -db $HERE/base -outfmt 6", ("proteins",),
            "makeblastdb -dbtype prot -in $INPUT/proteins -out base && head -n 12 $INPUT/proteins >some"),
    Program("diamond", ("diamond-aligner",), ("diamond",), "exec diamond blastp --quiet --threads 2 -q $HERE/some -d $HERE/base", ("proteins",),
            "diamond makedb --quiet --in $INPUT/proteins -d base && head -n 400 $INPUT/proteins >some"),
    Program("flexbar", ("flexbar",), ("flexbar",), "flexbar -n 2 -r $HERE/reads.fastq -qf i1.8 -q TAIL -aa TruSeq -t out >log && cksum <out.fastq | cut -c1-3", ("reads",), "cp $INPUT/reads reads.fastq", compares="status"),
]

SCIENCE = [
    Program("xtb", ("xtb",), ("xtb",), "exec xtb $HERE/caffeine.xyz --gfn 2 --opt --cycles 4", ("caffeine",), "cp $INPUT/caffeine caffeine.xyz", compares="status"),
    Program("gmx mdrun", ("gromacs", "gromacs-data"), ("gmx",), "exec gmx -quiet -nobackup mdrun -s $HERE/topol.tpr -nt 2 -ntmpi 1 -ntomp 2 -nsteps 30", (),
            """printf '#include "oplsaa.ff/forcefield.itp"\\n#include "oplsaa.ff/spce.itp"\\n[ system ]\\nw\\n[ molecules ]\\n' >topol.top
            gmx solvate -cs spc216.gro -box 2.6 2.6 2.6 -p topol.top -o conf.gro
            printf 'integrator = md\\nnsteps = 1000\\ncutoff-scheme = Verlet\\ncoulombtype = PME\\nrcoulomb = 1\\nrvdw = 1\\ngen_vel = yes\\ngen_seed = 1\\n' >grompp.mdp
            gmx grompp -maxwarn 5""", compares="status"),
    Program("cp2k", ("cp2k", "cp2k-data"), ("cp2k.psmp",), "exec cp2k.psmp -i $HERE/water", ("water",), "cp $INPUT/water water", compares="status"),
    Program("pw.x", ("quantum-espresso",), ("pw.x",), "exec pw.x -i $HERE/silicon", ("silicon",),
            "cp $INPUT/silicon silicon && zcat /usr/share/doc/quantum-espresso/examples/EPW/sic/pp/Si.pz-vbc.UPF.gz >Si.upf", compares="status"),
    Program("ccx", ("calculix-ccx",), ("ccx",), "cp $HERE/beam.inp . && exec ccx -i beam", ("beam",), "cp $INPUT/beam beam.inp", drop=(r" *Using up to.*\n", r"Total CalculiX Time.*\n", r".*[0-9.]+ s\n")),
    Program("cbc", ("coinor-cbc",), ("cbc",), "exec cbc $HERE/problem.lp -threads 2 -maxNodes 90 -solve -quit", ("knapsack",), "cp $INPUT/knapsack problem.lp", compares="status"),
    Program("stockfish", ("stockfish",), ("/usr/games/stockfish",), "exec /usr/games/stockfish bench 16 2 9", compares="status"),
    Program("sysbench cpu", ("sysbench",), ("sysbench",), "exec sysbench cpu --threads=2 --events=2400 --time=0 run", compares="status"),
    Program("hpcc", ("hpcc",), ("hpcc", "mpirun"), "cp $HERE/hpccinf.txt . && exec mpirun --oversubscribe -n 2 hpcc", (),
            "sed 's/^1000 /100 /; s/^2  *Ps/1 Ps/' /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt", compares="status"),
]

NUMERICS = [
    python("NumPy matmul", NUMPY, ("numpy",), "import numpy; a = numpy.ones((400, 400)) / 400\nfor _ in range(60): a = a @ a\nprint(a.sum())"),
    python("NumPy eigh", NUMPY, ("numpy",), "import numpy; a = numpy.random.default_rng(1).random((800, 800)); print(\"%.6g\" % numpy.linalg.eigh(a + a.T)[0].max())"),
    python("SciPy solve", SCIPY, ("numpy", "scipy"), "import numpy, scipy.linalg as l; a = numpy.random.default_rng(1).random((700, 700)) + 700 * numpy.eye(700)\nfor _ in range(12): x = l.solve(a, a[:, :50]); c = l.cholesky(a @ a.T)\nprint(\"%.6g\" % x.sum())"),
    python("SciPy fft", SCIPY, ("numpy", "scipy"), "import numpy, scipy.fft as f; a = numpy.random.default_rng(1).random((700, 700))\nfor _ in range(15): b = f.fft2(a, workers=2)\nprint(\"%.6g\" % abs(b).sum())"),
    python("scikit-learn KMeans", SKLEARN, ("sklearn",), "import numpy; from sklearn.cluster import KMeans; a = numpy.random.default_rng(1).random((6000, 16)); print(\"%.4g\" % KMeans(12, n_init=1, max_iter=20, random_state=1).fit(a).inertia_)"),
    python("scikit-learn boosting", SKLEARN, ("sklearn",), "import numpy; from sklearn.ensemble import HistGradientBoostingRegressor as R; a = numpy.random.default_rng(1).random((4000, 10)); print(\"%.4g\" % R(max_iter=8, random_state=1).fit(a, a.sum(1)).score(a, a.sum(1)))"),
    python("scikit-learn forest", SKLEARN, ("sklearn",), "import numpy; from sklearn.ensemble import RandomForestRegressor as R; a = numpy.random.default_rng(1).random((1500, 8)); print(\"%.4g\" % R(20, n_jobs=2, random_state=1).fit(a, a.sum(1)).score(a, a.sum(1)))"),
    python("PyTorch", TORCH, ("torch",), "torch_step.py"),
    python("ThreadPool of BLAS", NUMPY, ("numpy",), "threadpool_blas.py"),
    python("processes of BLAS", NUMPY, ("numpy",), "processes_blas.py"),
    Program("ThreadPool of zlib", ("python3",), (PYTHON,), f"exec {PYTHON} $PROGRAMS/threadpool_zlib.py $INPUT/text", ("text",)),
    Program("R", ("r-base-core", "libopenblas0-pthread"), ("Rscript",), "exec Rscript --vanilla $PROGRAMS/solve.R"),
    Program("Octave", ("octave", "libopenblas0-pthread"), ("octave-cli",), "exec octave-cli --norc --eval 'rand(\"seed\", 1); a = rand(500) + 500 * eye(500); for i = 1:6; b = a \\ a; [q, r] = qr(a); end; printf(\"%.6g\\n\", sum(b(:)))'"),
]

LANGUAGES = [
    Program("rustc", ("rustc",), ("rustc",), "exec rustc --edition 2021 -O -C codegen-units=4 $INPUT/rust -o out", ("rust",)),
    Program("go build", ("golang-go",), ("go",), "cp -r $INPUT/go_module m && cd m && for f in part*/part.go; do echo \"// $$\" >>$f; done && GOFLAGS=-mod=mod GOPROXY=off GOCACHE=$HERE/cache GOMAXPROCS=2 exec go build -p 2 -o ../out", ("go_module",),
            "cp -r $INPUT/go_module m && cd m && GOFLAGS=-mod=mod GOPROXY=off GOCACHE=$HERE/cache go build -o ../out"),
    Program("goroutines", ("golang-go",), ("go",), "GOMAXPROCS=2 exec $HERE/pool", (), "cp $PROGRAMS/pool.go . && GOPROXY=off GOCACHE=$HERE/cache go build -o pool pool.go"),
    Program("make -j2", ("make", "gcc"), ("make", "cc"), "exec make -s -j2 -f $INPUT/c_project/Makefile FROM=$INPUT/c_project program", ("c_project",)),
    Program("gcc -flto=2", ("gcc",), ("gcc",), "exec gcc -flto=2 -O2 $HERE/*.o -o out", ("c_project",), "gcc -O2 -flto -c $INPUT/c_project/*.c"),
    Program("Java pools", ("default-jdk-headless",), ("java", "javac"), "exec java -XX:ActiveProcessorCount=2 -cp $HERE Pool", (), "javac -d . $PROGRAMS/Pool.java"),
    Program("node workers", ("nodejs",), ("node",), "exec node $PROGRAMS/workers.js"),
    Program("Erlang", ("erlang-base",), ("erl", "erlc"), "exec erl -noshell -noinput +S 2:2 -pa $HERE -s pool main", (), "erlc $PROGRAMS/pool.erl"),
    Program("Perl threads", ("perl",), ("perl",), "exec perl $PROGRAMS/threads.pl"),
]

TOOLS = [
    Program("sort", ("coreutils",), ("sort",), "sort --parallel=2 -S 60M $INPUT/lines | cksum", ("lines",)),
    Program("git pack-objects", ("git",), ("git",), "exec git -C $HERE/repository -c pack.threads=2 pack-objects --all --no-reuse-delta --no-reuse-object --window=15 -q --stdout </dev/null >packed", ("history",),
            "git init -q -b main repository && cd repository && git fast-import --quiet <$INPUT/history/stream && git reset -q --hard"),
    Program("git grep", ("git",), ("git",), "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do git -C $HERE/repository grep --threads 2 -c -E 'e[a-t]*a.*r(n|s)+.*[lu]o' || exit; done", ("history",),
            "git init -q -b main repository && cd repository && git fast-import --quiet <$INPUT/history/stream && git reset -q --hard"),
]

SERVERS = [
    Program("PostgreSQL", ("postgresql",), ("/usr/lib/postgresql/*/bin/postgres", "setpriv"),
            """bin=$(echo /usr/lib/postgresql/*/bin | tail -n 1); data=$HERE/data$COPY
            [ -z "$SERVET_REGISTRY" ] || export SERVET_REGISTRY=$HERE/registry/file
            as=; [ $(id -u) != 0 ] || as='setpriv --reuid=postgres --regid=postgres --clear-groups'
            $as $bin/postgres -D $data -k $data -p $PORT -c listen_addresses= -c fsync=off -c autovacuum=off >/dev/null 2>&1 & server=$!
            until $bin/pg_isready -q -h $data -p $PORT; do sleep 0.01; done
            $as $bin/pgbench -h $data -p $PORT -n -S -c 4 -j 2 -t 1500 postgres >said 2>&1; rc=$?
            kill -INT $server; wait $server; grep -c 'processed: 6000/6000' said; exit $rc""", (),
            """bin=$(echo /usr/lib/postgresql/*/bin | tail -n 1); as=; mkdir registry
            if [ $(id -u) = 0 ]; then as='setpriv --reuid=postgres --regid=postgres --clear-groups'; chown postgres . registry; fi
            $as $bin/initdb -D $PWD/data0 -N >/dev/null
            $as $bin/postgres -D $PWD/data0 -k $PWD/data0 -p $PORT -c listen_addresses= -c fsync=off >log 2>&1 & server=$!
            until $bin/pg_isready -q -h $PWD/data0 -p $PORT; do sleep 0.1; done
            $as $bin/pgbench -h $PWD/data0 -p $PORT -i -s 1 -q postgres
            kill -INT $server; wait $server; for i in 1 2 3; do cp -a data0 data$i; done""", leaves=True),
    Program("redis", ("redis-server", "redis-tools"), ("redis-server", "redis-benchmark"),
            """redis-server --port 0 --unixsocket $PWD/socket --io-threads 2 --save '' --appendonly no >log & server=$!
            until redis-cli -s $PWD/socket ping >/dev/null 2>&1; do sleep 0.01; done
            redis-benchmark -s $PWD/socket --threads 2 -c 20 -n 5000 -t set,get -q >said; rc=$?
            redis-cli -s $PWD/socket shutdown nosave; wait $server; exit $rc""", leaves=True),
    Program("nginx and ab", ("nginx-light", "apache2-utils"), ("/usr/sbin/nginx", "ab"),
            """mkdir logs; printf 'daemon off; pid pid; worker_processes 2; error_log stderr crit; events {} http { access_log off; aio threads; server { listen 127.0.0.1:%s; root %s; } }' $PORT $HERE >conf
            /usr/sbin/nginx -p $PWD -c conf & server=$!
            until ab -q -n 1 http://127.0.0.1:$PORT/page >/dev/null 2>&1; do sleep 0.01; done
            ab -q -k -c 8 -n 10000 http://127.0.0.1:$PORT/page | grep -c 'Complete requests: *10000'; rc=$?
            kill $server; wait $server; exit $rc""", ("text",), head("text", "8K") + " && mv data page", leaves=True),
]

OURS = [
    ours("one", "one"),
    ours("two_pools", "two_pools 2000"),
    ours("openmp_and_blas", "openmp_and_blas 300"),
    ours("pipeline", "pipeline 600"),
    ours("teams", "teams 8000"),
    ours("serial_parts", "serial_parts 3 80000", drop=(r"[0-9.e+-]+\n",)),
    ours("teams", "teams 300 nested", label="nested"),
    ours("overhead_child", "overhead_child loop 5000 nobody", label="short_threads"),
    ours("overhead_child", "overhead_child latency 1000 nobody", r"median ([0-9]+)", "start_latency", drop=(r"[0-9]+",)),
    ours("fork_join_async", "fork_join_async 5000 2 1000", label="fork_join_async 3 us"),
    ours("fork_join_async", "fork_join_async 3000 2 30000 1", label="fork_join_async 30 us"),
    ours("fork_join_async", "fork_join_async 1000 2 300000 1", label="fork_join_async 300 us"),
    Program("mpirun ranks", ("openmpi-bin",), ("$BUILT/laboratory/preload/ranks", "mpirun"), "exec mpirun --oversubscribe -n 2 $BUILT/laboratory/preload/ranks", figure=r"(?m)^([0-9.]+)$", drop=(r"rank \d on PU \d+\n",), leaves=True),
]

KERNELS = [kernel(name, form) for form in ("omp", "mpi") for name in ("cg", "triad", "random_access", "halo")]

PROGRAMS = COMPRESSORS + PICTURES + FILMS + BIOLOGY + SCIENCE + NUMERICS + LANGUAGES + TOOLS + SERVERS + KERNELS + OURS


def npb(folder):
    """NPB binaries, which their names tell; those that need an MPI library are started with two ranks."""
    found = []
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(place, name)
            if not re.fullmatch(r"(bt|cg|dt|ep|ft|is|lu|mg|sp|ua)(-mz)?\.[SWABCDEF]\.(x|2)", name) or not os.access(path, os.X_OK):
                continue
            with open(path, "rb") as file:
                mpi = b"libmpi" in file.read()
            started = "exec mpirun --oversubscribe -n 2 " if mpi else "exec "
            found.append(Program(f"NPB {os.path.relpath(path, folder)}", (), (path,), started + path, compares="status",
                                 figure=r"Time in seconds = +([0-9.]+)", leaves=mpi))
    return found


def own(path):
    """Programs of a file: NAME COMMAND... on each line."""
    with open(path, encoding="utf-8") as file:
        known = [line.strip().split(maxsplit=1) for line in file]
    return [Program(one[0], (), (), one[1], leaves=True) for one in known if len(one) == 2]
