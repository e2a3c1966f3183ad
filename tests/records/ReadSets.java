import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/** Prints the records of each file as Kafka's own classes read them, one line a record. */
public class ReadSets {
    public static void main(String[] files) throws Exception {
        StringBuilder out = new StringBuilder();
        for (String file : files) {
            ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(file)));
            for (RecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
                batch.ensureValid();
                for (Record record : batch) {
                    record.ensureValid();
                    out.append(Path.of(file).getFileName()).append(' ').append(batch.compressionType().name);
                    out.append(' ').append(record.offset()).append(' ').append(record.timestamp());
                    out.append(' ').append(hex(record.key())).append(' ').append(hex(record.value()));
                    for (Header header : record.headers()) {
                        out.append(' ').append(header.key()).append('=');
                        out.append(header.value() == null ? "null" : hex(ByteBuffer.wrap(header.value())));
                    }
                    out.append('\n');
                }
            }
        }
        System.out.print(out);
    }

    private static String hex(ByteBuffer bytes) {
        if (bytes == null)
            return "null";
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return "0x" + java.util.HexFormat.of().formatHex(copy);
    }
}
