import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.flink.formats.avro.AvroFormatOptions.AvroEncoding;
import org.apache.flink.formats.avro.AvroRowDataDeserializationSchema;
import org.apache.flink.formats.avro.AvroRowDataSerializationSchema;
import org.apache.flink.formats.avro.typeutils.AvroSchemaConverter;
import org.apache.flink.formats.common.TimestampFormat;
import org.apache.flink.formats.json.JsonFormatOptions.MapNullKeyMode;
import org.apache.flink.formats.json.JsonRowDataDeserializationSchema;
import org.apache.flink.formats.json.JsonRowDataSerializationSchema;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;

/**
 * Reads cases of Avro from standard input, one JSON object a line, and answers what Flink makes of each: the schema of
 * the columns, how rows (given as JSON) are written in both encodings, and what bodies (in hexadecimal) are read as.
 */
public class FlinkAvro {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    static ObjectNode answer(JsonNode one) throws Exception {
        List<RowType.RowField> fields = new ArrayList<>();
        for (JsonNode column : one.get("columns")) {
            String[] parts = column.asText().split(" ", 2);
            fields.add(new RowType.RowField(parts[0], type(parts[1])));
        }
        // As the planner hands it to formats: the row itself is not null.
        RowType row = new RowType(false, fields);
        boolean legacy = one.get("legacy").asBoolean();
        ObjectNode answer = JSON.createObjectNode();
        try {
            answer.set("schema", JSON.readTree(AvroSchemaConverter.convertToSchema(row, legacy).toString()));
        } catch (RuntimeException refused) {
            answer.put("schema", "refused");
            return answer;
        }
        var info = InternalTypeInfo.of(row);
        var fromJson = new JsonRowDataDeserializationSchema(row, info, false, false, TimestampFormat.SQL);
        fromJson.open(null);
        var toJson = new JsonRowDataSerializationSchema(row, TimestampFormat.SQL, MapNullKeyMode.FAIL, "null", false, false);
        toJson.open(null);
        ArrayNode written = answer.putArray("written");
        for (JsonNode body : one.get("rows")) {
            RowData data = fromJson.deserialize(JSON.writeValueAsBytes(body));
            ObjectNode each = written.addObject();
            for (AvroEncoding encoding : AvroEncoding.values()) {
                var writer = new AvroRowDataSerializationSchema(row, encoding, legacy);
                writer.open(null);
                byte[] bytes = writer.serialize(data);
                boolean text = encoding == AvroEncoding.JSON;
                String shown = text ? new String(bytes, StandardCharsets.UTF_8) : HexFormat.of().formatHex(bytes);
                each.put(encoding.toString(), shown);
            }
        }
        ArrayNode read = answer.putArray("read");
        for (JsonNode body : one.get("bodies")) {
            var reader = new AvroRowDataDeserializationSchema(row, info, AvroEncoding.BINARY, legacy);
            reader.open(null);
            try {
                RowData data = reader.deserialize(HexFormat.of().parseHex(body.asText()));
                read.add(JSON.readTree(toJson.serialize(data)));
            } catch (Exception error) {
                read.add("error");
            }
        }
        return answer;
    }

    static LogicalType type(String text) {
        return LogicalTypeParser.parse(text, FlinkAvro.class.getClassLoader());
    }
}
