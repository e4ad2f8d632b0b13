package org.sqlrun.s3;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A small file of S3A as one PUT, which the store refuses if the object exists.
 *
 * <p>It needs S3A of Hadoop 3.4.2 or newer, and a store that supports the header If-None-Match.
 */
public final class ConditionalUpload {
  private static final String IF_ABSENT = "fs.option.create.conditional.overwrite";

  /** S3's answer while it has not yet decided between two uploads of one object. */
  private static final String UNDECIDED = "Status Code: 409";

  private static final int ATTEMPTS = 8;
  private static final long FIRST_PAUSE = 50;

  private ConditionalUpload() {}

  /**
   * Writes a file that isn't there yet. Equal bytes count as its own, written by an upload whose answer was lost.
   *
   * @throws FileAlreadyExistsException if a file with other bytes is there
   */
  public static void create(FileSystem files, Path path, byte[] bytes) throws IOException {
    long pause = FIRST_PAUSE;
    for (int attempt = 1; ; attempt++) {
      try {
        put(files, path, bytes, true);
        return;
      } catch (IOException error) {
        // Whatever the error: the upload may have succeeded, and its answer been lost. S3A itself repeats an
        // upload without an answer; the second one is then refused because of the first.
        if (isOwn(files, path, bytes, error)) {
          return;
        }
        if (attempt == ATTEMPTS || !String.valueOf(error.getMessage()).contains(UNDECIDED)) {
          throw error;
        }
      }
      sleep(pause);
      pause *= 2;
    }
  }

  /** Writes a file, also over another one. */
  public static void replace(FileSystem files, Path path, byte[] bytes) throws IOException {
    put(files, path, bytes, false);
  }

  /** Returns whether the file at a path has these bytes; false if there is none. */
  private static boolean isOwn(FileSystem files, Path path, byte[] bytes, IOException error) throws IOException {
    try (InputStream there = files.open(path)) {
      // One byte more shows that the file goes on.
      if (Arrays.equals(there.readNBytes(bytes.length), bytes) && there.read() < 0) {
        return true;
      }
    } catch (FileNotFoundException none) {
      return false;
    } catch (IOException unread) {
      error.addSuppressed(unread);
      throw error;
    }
    FileAlreadyExistsException taken = new FileAlreadyExistsException(path.toString());
    taken.initCause(error);
    throw taken;
  }

  private static void put(FileSystem files, Path path, byte[] bytes, boolean ifAbsent) throws IOException {
    FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path).recursive();
    // Without this, S3A looks whether there is a file, which decides nothing.
    builder.overwrite(true);
    if (ifAbsent) {
      builder.must(IF_ABSENT, true);
    }
    FSDataOutputStream out = builder.build();
    boolean complete = false;
    try {
      out.write(bytes);
      complete = true;
    } finally {
      if (complete) {
        out.close();
      } else {
        // Closing it would upload the part that it has.
        out.abort();
      }
    }
  }

  private static void sleep(long milliseconds) throws IOException {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted between two attempts to commit");
    }
  }
}
