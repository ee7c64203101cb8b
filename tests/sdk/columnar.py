"""Files of pyarrow and fastavro as bodies of messages, and what other programs make of the files that are written.

  columnar.py make FOLDER               FORMAT/NAME.body for each body, and FORMAT/schema.yaml for its columns
  columnar.py compare FORMAT FOLDER     whether the lines of JSON in FOLDER are the rows of all bodies of FORMAT
  columnar.py among FORMAT FOLDER       whether they are among the lines there
  columnar.py files FORMAT FOLDER A,B   whether the files in FOLDER (parquet or avro) are the rows of the parquet bodies,
                                        in the columns A and B
  columnar.py numbers FOLDER COUNT      whether the column n of the parquet files in FOLDER is 0 to COUNT - 1, each once

Says what is wrong, and fails, or answers one line.
"""

import base64
import datetime
import decimal
import io
import json
import pathlib
import sys

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

D = decimal.Decimal
UTC = datetime.timezone.utc
ROWS = 9


def some(n, value):
    """Every fourth is null, at another place in each column."""
    return None if (n + len(str(value))) % 4 == 0 else value


def stamp(n, micros=123456):
    return datetime.datetime(1970 + n * 7, 1 + n % 12, 1 + n % 28, n % 24, 59, 58, micros)


# Name, type here, type of pyarrow, value of a row. Beside it: which formats have it.
COLUMNS = [
    ("b", "BOOLEAN", pa.bool_(), lambda n: n % 2 == 0, "po"),
    ("i8", "TINYINT", pa.int8(), lambda n: n - 128, "po"),
    ("i16", "SMALLINT", pa.int16(), lambda n: 32767 - n, "po"),
    ("i32", "INT", pa.int32(), lambda n: -(2**31) + n, "po"),
    ("i64", "BIGINT", pa.int64(), lambda n: 2**63 - 1 - n, "po"),
    ("u8", "SMALLINT", pa.uint8(), lambda n: 255 - n, "p"),
    ("u16", "INT", pa.uint16(), lambda n: 65535 - n, "p"),
    ("u32", "BIGINT", pa.uint32(), lambda n: 2**32 - 1 - n, "p"),
    ("u64", "DECIMAL(20, 0)", pa.uint64(), lambda n: D(2**64 - 1 - n), "p"),
    ("f32", "FLOAT", pa.float32(), lambda n: n + 0.5, "po"),
    ("f64", "DOUBLE", pa.float64(), lambda n: n * 1.1e300, "po"),
    ("d5", "DECIMAL(5, 2)", pa.decimal128(5, 2), lambda n: D(n) - D("999.99"), "po"),
    ("d18", "DECIMAL(18, 4)", pa.decimal128(18, 4), lambda n: D("12345678901234.5678") - n, "po"),
    ("d38", "DECIMAL(38, 10)", pa.decimal128(38, 10), lambda n: D("1234567890123456789012345678.0123456789") - n, "po"),
    ("s", "STRING", pa.string(), lambda n: "Grüße 世界 🦀"[: n + 1], "po"),
    ("ls", "STRING", pa.large_string(), lambda n: "x" * n, "p"),
    ("di", "STRING", pa.dictionary(pa.int32(), pa.string()), lambda n: "ab"[n % 2], "p"),
    ("x", "BYTES", pa.binary(), lambda n: bytes(range(n)), "po"),
    ("fx", "BYTES", pa.binary(4), lambda n: bytes([n, 255, 0, 1]), "p"),
    ("dt", "DATE", pa.date32(), lambda n: datetime.date(1582 + n * 50, 1 + n, 1 + n), "po"),
    ("t_ms", "TIME(3)", pa.time32("ms"), lambda n: datetime.time(n, 2, 3, n * 1000), "p"),
    ("t_us", "TIME(3)", pa.time64("us"), lambda n: datetime.time(23, n, 59, n * 1000), "p"),
    ("ts_s", "TIMESTAMP(0)", pa.timestamp("s"), lambda n: stamp(n, 0), "p"),
    ("ts_ms", "TIMESTAMP(3)", pa.timestamp("ms"), lambda n: stamp(n, 123000), "po"),
    ("ts_us", "TIMESTAMP(6)", pa.timestamp("us"), stamp, "po"),
    ("ts_ns", "TIMESTAMP(9)", pa.timestamp("ns"), stamp, "po"),
    ("ts_old", "TIMESTAMP(6)", pa.timestamp("us"), lambda n: stamp(n).replace(year=1960 + n), "p"),
    # Fractions of a second before 1970 are written by pyarrow in a way that no one else reads.
    ("ts_old", "TIMESTAMP(6)", pa.timestamp("us"), lambda n: stamp(n, 0).replace(year=1900 + n), "o"),
    ("ns_old", "TIMESTAMP(9)", pa.timestamp("ns"), lambda n: stamp(n, 0).replace(year=1677 + n * 36 + (n == 0)), "o"),
    ("tz_old", "TIMESTAMP_LTZ(3)", pa.timestamp("ms", "UTC"), lambda n: stamp(n, 0).replace(year=1 + n * 246, tzinfo=UTC), "o"),
    ("l_old", "ARRAY<TIMESTAMP(0)>", pa.list_(pa.timestamp("ms")), lambda n: [stamp(n, 0).replace(year=1969 - k) for k in range(n % 3)], "o"),
    ("tz", "TIMESTAMP_LTZ(6)", pa.timestamp("us", "Asia/Shanghai"), lambda n: stamp(n).replace(tzinfo=UTC), "po"),
    ("l", "ARRAY<INT>", pa.list_(pa.int32()), lambda n: [k if k % 3 else None for k in range(n % 5)], "po"),
    ("ll", "ARRAY<ARRAY<STRING>>", pa.list_(pa.list_(pa.string())), lambda n: [["a"] * k for k in range(n % 3)] + [None], "po"),
    ("m", "MAP<STRING, BIGINT>", pa.map_(pa.string(), pa.int64()), lambda n: {f"k{k}": k or None for k in range(n % 4)}, "po"),
    (
        "r",
        "ROW<a INT, b ROW<c STRING, d ARRAY<DOUBLE>>>",
        pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string()), ("d", pa.list_(pa.float64()))]))]),
        lambda n: {"a": some(n, n), "b": some(n + 1, {"c": some(n, "c"), "d": [n / 4, None]})},
        "po",
    ),
    (
        "lr",
        "ARRAY<ROW<k STRING, v DECIMAL(20, 3)>>",
        pa.list_(pa.struct([("k", pa.string()), ("v", pa.decimal128(20, 3))])),
        lambda n: [{"k": f"k{k}", "v": some(k, D(k) / 8)} for k in range(n % 3)],
        "po",
    ),
]


def table(letter, first):
    """Rows first.. as a table, and as they are."""
    columns = [column for column in COLUMNS if letter in column[4]]
    rows = [{"n": n, **{name: some(n - first, make(n - first)) for name, _, _, make, _ in columns}} for n in range(first, first + ROWS)]
    arrays = {"n": pa.array([row["n"] for row in rows], pa.int64())}
    for name, _, ty, _, _ in columns:
        values = [row[name] for row in rows]
        if pa.types.is_uint64(ty):
            values = [value if value is None else int(value) for value in values]
        if pa.types.is_map(ty):
            values = [value if value is None else list(value.items()) for value in values]
        arrays[name] = pa.array(values, ty)
    return pa.table(arrays), rows


def columns_of(letter):
    return {"n": "BIGINT NOT NULL", **{name: ty for name, ty, _, _, formats in COLUMNS if letter in formats}, "absent": "ARRAY<DATE>"}


def parquet_bodies():
    def written(first, extra=None, **options):
        out, (made, rows) = io.BytesIO(), table("p", first)
        pq.write_table(made if extra is None else made.append_column(extra, made["s"]), out, **options)
        return out.getvalue(), rows

    plain = {"use_dictionary": False}
    delta = {"column_encoding": {"s": "DELTA_BYTE_ARRAY", "ls": "DELTA_LENGTH_BYTE_ARRAY", "i64": "DELTA_BINARY_PACKED", "f64": "BYTE_STREAM_SPLIT"}}
    kinds = [
        *({"compression": codec} for codec in ("NONE", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4")),
        {"row_group_size": 2},
        {"row_group_size": 4, "compression": "ZSTD", "data_page_version": "2.0"},
        {**plain, "data_page_version": "2.0", "compression": "SNAPPY"},
        {**plain, **delta},
        {**plain, **delta, "data_page_version": "2.0", "row_group_size": 3},
        {"use_deprecated_int96_timestamps": True},
        {"store_decimal_as_integer": True},
        {"version": "1.0", "store_schema": False},
        {"extra": "more", "write_statistics": False},
        {"data_page_size": 16, "write_batch_size": 2},
        {"write_page_index": True, "write_page_checksum": True},
    ]
    return {f"p{at:02}": written(at * ROWS, **kind) for at, kind in enumerate(kinds)}


UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
# Name, type here, type of pyarrow, digits of a second that the file has, and that a column of the type keeps.
TIMES = [
    *(
        (f"{unit}_{zone}_{to.lower().translate(str.maketrans('()', '__'))}", to, pa.timestamp(unit, "UTC" if zone == "utc" else None), digits, 9 if "9" in to else 6)
        for unit, digits in UNITS.items()
        for zone in ("utc", "local")
        for to in ("TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(3)")
    ),
    *(
        (f"t_{unit}_{to}", f"TIME({to})", (pa.time32 if unit == "ms" else pa.time64)(unit), UNITS[unit], 3)
        for unit in ("ms", "us", "ns")
        for to in (0, 3)
    ),
]


def clock(nanoseconds, digits):
    """Of a day, with so many digits of a second; what is finer is cut off."""
    seconds, fraction = divmod(nanoseconds, 10**9)
    return trimmed(f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{f'{fraction:09}'[:digits]}")


def times_bodies():
    """Timestamps and times in every unit into columns of every precision, as the text that comes of them."""
    day = 86_400 * 10**9
    instants = [-1, 0, 1, -day, day - 1, -987_654_321, 1_700_000_000_123_456_789, -2_208_988_799_876_543_211, 9_000_000_000_999_999_999]

    def written(first, **options):
        rows = [{"n": first + at} for at in range(len(instants))]
        arrays = {"n": pa.array([row["n"] for row in rows], pa.int64())}
        for name, to, ty, digits, kept in TIMES:
            of = [instant % day if to.startswith("TIME(") else instant for instant in instants]
            arrays[name] = pa.array([value // 10 ** (9 - digits) for value in of], pa.int32() if ty == pa.time32("ms") else pa.int64()).cast(ty)
            for row, value in zip(rows, of):
                date = datetime.date(1970, 1, 1) + datetime.timedelta(days=value // day)
                row[name] = clock(value % day, min(digits, kept))
                if to.startswith("TIMESTAMP"):
                    row[name] = f"{date} {row[name]}{'Z' if 'LTZ' in to else ''}"
        out = io.BytesIO()
        pq.write_table(pa.table(arrays), out, **options)
        return out.getvalue(), rows

    kinds = [{}, {"store_schema": False}, {"use_deprecated_int96_timestamps": True}, {"use_dictionary": False, "data_page_version": "2.0"}]
    return {f"t{at:02}": written(at * len(instants), **kind) for at, kind in enumerate(kinds)}


def orc_bodies():
    def written(first, **options):
        out, (made, rows) = io.BytesIO(), table("o", first)
        pyarrow.orc.write_table(made, out, **options)
        return out.getvalue(), rows

    kinds = [
        *({"compression": codec} for codec in ("uncompressed", "zlib", "snappy", "lz4", "zstd")),
        {"dictionary_key_size_threshold": 1.0},
        {"dictionary_key_size_threshold": 1.0, "compression": "zstd"},
        {"file_version": "0.11"},
        {"file_version": "0.11", "dictionary_key_size_threshold": 1.0, "compression": "zlib"},
        {"batch_size": 2, "stripe_size": 1},
    ]
    return {f"o{at:02}": written(at * ROWS, **kind) for at, kind in enumerate(kinds)}


def null_or(ty):
    return ["null", ty]


def logical(of, name, **more):
    return {"type": of, "logicalType": name, **more}


def avro_record(name, fields):
    return {"type": "record", "name": name, "fields": [{"name": key, "type": ty} for key, ty in fields.items()]}


AVRO_COLUMNS = {
    "n": "BIGINT NOT NULL",
    "b": "BOOLEAN",
    "i8": "TINYINT",
    "i32": "INT NOT NULL",
    "f32": "FLOAT",
    "f64": "DOUBLE",
    "d38": "DECIMAL(38, 10)",
    "s": "STRING",
    "x": "BYTES",
    "dt": "DATE",
    "tm": "TIME(3)",
    "ts": "TIMESTAMP(6)",
    "tz": "TIMESTAMP_LTZ(3)",
    "l": "ARRAY<INT>",
    "m": "MAP<STRING, BIGINT>",
    "r": "ROW<a INT, b ARRAY<ROW<c STRING>>>",
}

# As Flink derives it, timestamps in the later mapping.
AVRO_DERIVED = avro_record(
    "record",
    {
        "n": "long",
        "b": null_or("boolean"),
        "i8": null_or("int"),
        "i32": "int",
        "f32": null_or("float"),
        "f64": null_or("double"),
        "d38": null_or(logical("bytes", "decimal", precision=38, scale=10)),
        "s": null_or("string"),
        "x": null_or("bytes"),
        "dt": null_or(logical("int", "date")),
        "tm": null_or(logical("int", "time-millis")),
        "ts": null_or(logical("long", "local-timestamp-micros")),
        "tz": null_or(logical("long", "timestamp-millis")),
        "l": null_or({"type": "array", "items": null_or("int")}),
        "m": null_or({"type": "map", "values": null_or("long")}),
        "r": null_or(avro_record("record_r", {"a": null_or("int"), "b": null_or({"type": "array", "items": null_or(avro_record("record_r_b", {"c": null_or("string")}))})})),
    },
)

# What a producer may have instead: another order, other branches, promotions, named types, more fields.
AVRO_OWN = avro_record(
    "com.example.Event",
    {
        "more": {"type": "map", "values": ["string", "null", {"type": "array", "items": "com.example.Event"}]},
        "r": [avro_record("R", {"b": {"type": "array", "items": [avro_record("C", {"z": "double", "c": ["string", "null"]}), "null"]}, "a": ["int", "null"]}), "null"],
        "m": [{"type": "map", "values": ["int", "long", "null"]}, "null"],
        "l": ["null", {"type": "array", "items": ["int", "null"]}],
        "tz": ["null", logical("long", "timestamp-micros")],
        "ts": ["null", logical("long", "timestamp-micros")],
        "tm": ["null", logical("long", "time-micros")],
        "dt": [logical("int", "date"), "null"],
        "x": ["null", {"type": "fixed", "name": "X", "size": 3}],
        "s": ["null", {"type": "enum", "name": "S", "symbols": ["A", "B", "C"]}],
        "d38": ["null", {"type": "fixed", "name": "D", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 10}],
        "f64": ["float", "null"],
        "f32": ["null", "int"],
        "i32": "int",
        "i8": ["long", "null"],
        "b": ["boolean", "null"],
        "n": "int",
    },
)


def avro_row(n, own):
    def maybe(value):
        return some(n + 1, value)

    return {
        "n": n,
        "b": maybe(n % 2 == 0),
        "i8": maybe(n % 100 - 50),
        "i32": -n,
        "f32": maybe(n if own else n + 0.5),
        "f64": maybe(n * 0.25),
        "d38": maybe(D("1234567890123456789012345678.0123456789") - n),
        "s": maybe("ABC"[n % 3] if own else "Grüße 世界 🦀"[: n % 12]),
        "x": maybe(bytes([n % 256, 0, 255]) if own else bytes(range(n % 7))),
        "dt": maybe(datetime.date(1900 + n % 100, 1, 2)),
        "tm": maybe(datetime.time(n % 24, 59, 58, 123000)),
        "ts": maybe(stamp(n % 9)),
        "tz": maybe(stamp(n % 9, 5000).replace(tzinfo=UTC)),
        "l": maybe([k if k % 3 else None for k in range(n % 5)]),
        "m": maybe({f"k{k}": k or None for k in range(n % 4)}),
        "r": maybe({"a": maybe(n), "b": [None, {"c": "c"}, {"c": None}]}),
    }


def avro_bodies():
    bodies = {}
    for n in range(20):
        out, row = io.BytesIO(), avro_row(n, False)
        fastavro.schemaless_writer(out, AVRO_DERIVED, row)
        bodies[f"bare{n:02}"] = (out.getvalue(), [row])
    first = 100
    for schema, own in ((AVRO_DERIVED, False), (AVRO_OWN, True)):
        for codec in ("null", "deflate", "snappy", "zstandard", "bzip2", "xz"):
            rows = [avro_row(n, own) for n in range(first, first + 7)]
            out, first = io.BytesIO(), first + 7
            written = [dict(row) for row in rows]
            for row in written if own else ():
                row["more"] = {"k": "v", "l": [], "z": None}
                # fastavro reads a timestamp without a zone as local time.
                row["ts"] = row["ts"] and row["ts"].replace(tzinfo=UTC)
                if row["r"]:
                    row["r"] = {"a": row["r"]["a"], "b": [c and {"z": 1.0, **c} for c in row["r"]["b"]]}
            fastavro.writer(out, schema, written, codec=codec, sync_interval=100)
            bodies[f"{'own' if own else 'file'}_{codec}"] = (out.getvalue(), rows)
    return bodies


FORMATS = {
    "parquet": (parquet_bodies, columns_of("p")),
    "times": (times_bodies, {"n": "BIGINT NOT NULL", **{name: to for name, to, *_ in TIMES}}),
    "orc": (orc_bodies, columns_of("o")),
    "avro": (avro_bodies, {**AVRO_COLUMNS, "absent": None}),
}


def shown(value, ty=""):
    """A value as the format json writes it, numbers exact."""
    if isinstance(value, dict):
        return {key: shown(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(inner) for inner in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        return D(repr(value)).normalize()
    if isinstance(value, (int, D)):
        return D(value).normalize(decimal.Context(prec=60))
    if isinstance(value, datetime.datetime):
        return trimmed(value.replace(tzinfo=None).isoformat(" ")) + ("Z" if value.tzinfo else "")
    if isinstance(value, datetime.time):
        return trimmed(value.isoformat())
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise TypeError(f"{value!r} of {ty}")


def trimmed(text):
    return text.rstrip("0").rstrip(".") if "." in text else text


def read_lines(folder):
    for file in sorted(pathlib.Path(folder).glob("part-*")):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield json.loads(line, parse_float=D, parse_int=D)


def normalised(value):
    if isinstance(value, dict):
        return {key: normalised(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [normalised(inner) for inner in value]
    return value.normalize(decimal.Context(prec=60)) if isinstance(value, D) else value


def check(expected, found):
    """Both are lists of rows by n."""
    expected = {int(row["n"]): row for row in expected}
    numbers = [int(row["n"]) for row in found]
    assert sorted(numbers) == sorted(expected), f"rows {sorted(set(expected) ^ set(numbers))} are missing or too many"
    for row in found:
        wanted = expected[int(row["n"])]
        for name in wanted:
            assert row.get(name) == wanted[name], f"row {row['n']}, {name}: expected {wanted[name]!r}, found {row.get(name)!r}"
    print(json.dumps({"rows": len(numbers)}))


def rows_of(name):
    bodies, columns = FORMATS[name]
    keys = [column for column, ty in columns.items() if ty]
    return [{key: shown(row.get(key)) for key in keys} for _, rows in bodies().values() for row in rows]


def among(name, folder):
    found = [normalised(row) for row in read_lines(folder)]
    lost = [row["n"] for row in rows_of(name) if row not in found]
    assert not lost, f"rows {lost} are missing"
    print(json.dumps({"rows": len(found)}))


def make(folder):
    for name, (bodies, columns) in FORMATS.items():
        where = pathlib.Path(folder) / name
        where.mkdir(parents=True)
        (where / "schema.yaml").write_text("".join(f"    {column}: '{ty}'\n" for column, ty in columns.items() if ty))
        for body, (content, _) in bodies().items():
            assert len(content) <= 48 * 1024, f"{body} is too large for a message"
            (where / f"{body}.body").write_bytes(content)


def files(name, folder, columns):
    read = []
    for file in sorted(pathlib.Path(folder).glob(f"part-*.{name}")):
        if name == "parquet":
            read += pq.ParquetFile(file).read().to_pylist(maps_as_pydicts="strict")
        else:
            with file.open("rb") as opened:
                read += list(fastavro.reader(opened))
    kept = set(columns.split(","))
    wanted = [{key: value for key, value in row.items() if key in kept} for row in rows_of("parquet")]
    check(wanted, [shown(row) for row in read])


def numbers(folder, count):
    found = [n for file in sorted(pathlib.Path(folder).glob("part-*.parquet")) for n in pq.ParquetFile(file).read(["n"])["n"].to_pylist()]
    assert sorted(found) == list(range(int(count))), f"{len(found)} rows, {len(set(found))} of them different"
    print(json.dumps({"rows": len(found)}))


def main(what, *arguments):
    if what == "compare":
        check(rows_of(arguments[0]), [normalised(row) for row in read_lines(arguments[1])])
    else:
        {"make": make, "among": among, "files": files, "numbers": numbers}[what](*arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
