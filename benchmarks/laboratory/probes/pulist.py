"""Lists of PUs as profiles and descriptions of machines have them, "0-3,8"."""


def members(text):
    for part in text.split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)


def pulist(pus):
    return ",".join(str(pu) for pu in sorted(pus))
